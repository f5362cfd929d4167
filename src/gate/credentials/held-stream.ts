/**
 * Looking for a mark in a stream that may split it over chunks. The mark of phantoms is public: a delay that shows where its
 * start was found tells nothing.
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
