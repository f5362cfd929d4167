/** Content with holes, for readers that take bytes alone. */

import { type Hole, isHole } from './content-hash.ts';
import { Turns } from './turns.ts';

const zeroPiece = Buffer.alloc(1024 * 1024);

/** Zeros are made as they are read. Nobody waits for them, so others get their turn in between. */
export async function* withZeros(pieces: AsyncIterable<Buffer | Hole>): AsyncGenerator<Buffer> {
  const turns = new Turns();
  for await (const piece of pieces) {
    if (!isHole(piece)) {
      yield piece;
      continue;
    }
    for (let left = piece.holeBytes; left > 0; left -= zeroPiece.length) {
      await turns.take();
      yield left < zeroPiece.length ? zeroPiece.subarray(0, left) : zeroPiece;
    }
  }
}
