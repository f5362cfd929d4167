/** Bodies: taken apart strictly on one side, and framed anew on the other, so that both sides agree on where one ends. */

import type { Duplex } from 'node:stream';
import { type ByteReader, StreamEnded } from './byte-reader.ts';
import type { Framing } from './framing.ts';
import { mostHeadBytes, parseTrailers } from './head.ts';
import { HttpViolation } from './violation.ts';

const mostPieceBytes = 64 * 1024;
const mostChunkLineBytes = 256;

export type Side = 'bad_request' | 'bad_response';

/** `chunkEnded` is called with the size of each chunk that was read to its end. */
export async function* readBody(
  reader: ByteReader,
  framing: Framing,
  side: Side,
  chunkEnded: (bytes: number) => void = () => {},
): AsyncGenerator<Buffer> {
  switch (framing.kind) {
    case 'none':
      return;
    case 'length':
      return yield* readExactly(reader, framing.bytes);
    case 'chunked':
      return yield* readChunks(reader, side, chunkEnded);
    case 'until-close':
      return yield* reader.pieces();
  }
}

async function* readExactly(reader: ByteReader, bytes: number): AsyncGenerator<Buffer> {
  for (let left = bytes; left > 0; ) {
    const piece = await reader.some(Math.min(left, mostPieceBytes));
    if (piece === undefined) throw new StreamEnded('the stream ended within a body');
    left -= piece.length;
    yield piece;
  }
}

async function* readChunks(
  reader: ByteReader,
  side: Side,
  chunkEnded: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  for (;;) {
    const bytes = await readChunkSize(reader, side);
    if (bytes === 0) break;
    yield* readExactly(reader, bytes);
    await readChunkEnd(reader, side);
    chunkEnded(bytes);
  }
  await dropTrailers(reader, side);
}

async function readChunkSize(reader: ByteReader, side: Side): Promise<number> {
  const line = await reader.until(
    '\r\n',
    mostChunkLineBytes,
    () => malformed(side),
    (bytes) => {
      // Here the line has not ended yet, so this LF came without its CR.
      if (bytes.includes(10)) throw malformed(side);
    },
  );
  if (line === undefined) throw new StreamEnded('the stream ended within a body');
  // Extensions mean nothing to anybody, but a parser may trip over them: a request has none.
  const shape = side === 'bad_request' ? /^([0-9a-f]{1,12})$/i : /^([0-9a-f]{1,12})(?:[ \t]*;[^\r\n]*)?$/i;
  const match = shape.exec(line.subarray(0, -2).toString('latin1'));
  if (match === null) throw malformed(side);
  return Number.parseInt(match[1] ?? '', 16);
}

async function readChunkEnd(reader: ByteReader, side: Side): Promise<void> {
  let end = '';
  while (end.length < 2) {
    const piece = await reader.some(2 - end.length);
    if (piece === undefined) throw new StreamEnded('the stream ended within a body');
    end += piece.toString('latin1');
  }
  if (end !== '\r\n') throw malformed(side);
}

/** Fields after the body could contradict the head that was judged, so they end here. */
async function dropTrailers(reader: ByteReader, side: Side): Promise<void> {
  const lines: Buffer[] = [];
  for (let bytes = 0; ; ) {
    const line = await reader.until('\r\n', mostHeadBytes - bytes, () => malformed(side));
    if (line === undefined) throw new StreamEnded('the stream ended within a body');
    lines.push(line);
    bytes += line.length;
    if (line.length === 2) break;
  }
  if (lines.length > 1) parseTrailers(Buffer.concat(lines), side);
}

const malformed = (side: Side): HttpViolation => new HttpViolation(side, 'a chunk of the body is malformed');

/** Resolves when the stream wants more; rejects when it is gone. */
export function writeTo(stream: Duplex, bytes: Buffer): Promise<void> | undefined {
  if (stream.destroyed || stream.writableEnded) {
    return Promise.reject(new StreamEnded('the stream is closed'));
  }
  if (stream.write(bytes)) return undefined;
  return new Promise((resolve, reject) => {
    const done = (): void => {
      stream.off('drain', done);
      stream.off('close', gone);
      resolve();
    };
    const gone = (): void => {
      stream.off('drain', done);
      reject(new StreamEnded('the stream closed'));
    };
    stream.once('drain', done);
    stream.once('close', gone);
  });
}

/** What is written in this turn goes out together: a head and a small body are one piece for whoever reads, and one wake-up. */
export function gather(stream: Duplex): void {
  stream.cork();
  process.nextTick(() => stream.uncork());
}

const crlf = Buffer.from('\r\n');
const lastChunk = Buffer.from('0\r\n\r\n');

/** Writes pieces in the framing that the head announced. */
export class BodyWriter {
  readonly #stream: Duplex;
  readonly #chunked: boolean;

  constructor(stream: Duplex, framing: Framing) {
    this.#stream = stream;
    this.#chunked = framing.kind === 'chunked';
  }

  async write(piece: Buffer): Promise<void> {
    if (piece.length === 0) return;
    if (!this.#chunked) {
      await writeTo(this.#stream, piece);
      return;
    }
    const size = Buffer.from(`${piece.length.toString(16)}\r\n`, 'latin1');
    await writeTo(this.#stream, Buffer.concat([size, piece, crlf]));
  }

  async end(): Promise<void> {
    if (this.#chunked) await writeTo(this.#stream, lastChunk);
  }
}
