/**
 * Looking for words in a stream of which one may be split over chunks. What may be the start of a word is held back until the
 * next chunk tells; everything else passes at once, so that a stream of events is not delayed.
 */

/** The length of the longest end of `data` that is the start of one of the words. */
export function openEnd(data: Buffer, words: readonly Buffer[]): number {
  let longest = 0;
  for (const word of words) {
    const [first = 0] = word;
    const from = data.length - Math.min(word.length - 1, data.length);
    for (let at = data.indexOf(first, from); at >= 0; at = data.indexOf(first, at + 1)) {
      const length = data.length - at;
      if (length <= longest) break;
      if (data.compare(word, 0, length, at) === 0) longest = length;
    }
  }
  return longest;
}

/** Passes the stream on with each word masked by as many stars: lengths stay as they were announced. */
export async function* masked(body: AsyncIterable<Buffer>, words: readonly Buffer[]): AsyncGenerator<Buffer> {
  let held: Buffer = Buffer.alloc(0);
  for await (const piece of body) {
    const data = maskWords(held.length === 0 ? piece : Buffer.concat([held, piece]), words);
    const open = openEnd(data, words);
    held = data.subarray(data.length - open);
    if (open < data.length) yield data.subarray(0, data.length - open);
  }
  if (held.length > 0) yield held;
}

function maskWords(data: Buffer, words: readonly Buffer[]): Buffer {
  let out = data;
  for (const word of words) {
    for (let at = out.indexOf(word); at >= 0; at = out.indexOf(word, at + word.length)) {
      // The piece may be part of a buffer that is still read from.
      if (out === data) out = Buffer.from(data);
      out.fill('*', at, at + word.length);
    }
  }
  return out;
}

export const maskText = (text: string, words: readonly Buffer[]): string =>
  maskWords(Buffer.from(text, 'latin1'), words).toString('latin1');
