/** An answer that came compressed though it was asked for plain: unpacked as it passes, so that it can be searched. */

import { pipeline, Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';

const unpackers = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
} as const;

export const canUnpack = (coding: string): coding is keyof typeof unpackers =>
  Object.hasOwn(unpackers, coding);

export function unpacked(body: AsyncIterable<Buffer>, coding: keyof typeof unpackers): AsyncIterable<Buffer> {
  const out = unpackers[coding]({});
  pipeline(Readable.from(body), out, () => {
    // The reader of `out` learns of a failure by it.
  });
  return out as AsyncIterable<Buffer>;
}
