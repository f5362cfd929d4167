/**
 * Bodies that leave a sandbox, searched for phantoms. Plain bodies are searched to their end as they pass. Of a compressed one
 * the first mebibyte is unpacked and searched before any of it leaves; what is beyond passes unsearched.
 */

import { brotliDecompressSync, constants, gunzipSync, inflateRawSync, inflateSync } from 'node:zlib';
import { openEnd } from './held-stream.ts';
import { type PhantomOwner, type PhantomRegistry, phantomBytes, phantomMark } from './phantoms.ts';

const mostPackedBytes = 2 ** 20;
const mostUnpackedBytes = 16 * 2 ** 20;
const mark = Buffer.from(phantomMark);

/** Undefined: there it may be. */
export type Found = (owner: PhantomOwner) => Error | undefined;

export function scanned(
  body: AsyncIterable<Buffer>,
  coding: string | undefined,
  registry: PhantomRegistry,
  found: Found,
): AsyncIterable<Buffer> {
  const unpack = unpackers[coding ?? ''];
  return unpack === undefined ? scanPlain(body, registry, found) : scanPacked(body, unpack, registry, found);
}

async function* scanPlain(
  body: AsyncIterable<Buffer>,
  registry: PhantomRegistry,
  found: Found,
): AsyncGenerator<Buffer> {
  let held: Buffer = Buffer.alloc(0);
  for await (const piece of body) {
    const data = held.length === 0 ? piece : Buffer.concat([held, piece]);
    const open = search(data, registry, found);
    held = data.subarray(data.length - open);
    if (open < data.length) yield data.subarray(0, data.length - open);
  }
  if (held.length > 0) yield held;
}

/** Throws for a phantom; returns how many bytes of the end may be the start of one. */
function search(data: Buffer, registry: PhantomRegistry, found: Found): number {
  for (let at = data.indexOf(mark); at >= 0; at = data.indexOf(mark, at + 1)) {
    if (at + phantomBytes > data.length) return data.length - at;
    const owner = registry.ownerOf(data.toString('latin1', at, at + phantomBytes));
    const problem = owner === undefined ? undefined : found(owner);
    if (problem !== undefined) throw problem;
  }
  return openEnd(data, [mark]);
}

async function* scanPacked(
  body: AsyncIterable<Buffer>,
  unpack: (bytes: Buffer) => Buffer,
  registry: PhantomRegistry,
  found: Found,
): AsyncGenerator<Buffer> {
  const kept: Buffer[] = [];
  let bytes = 0;
  let looked = false;
  for await (const piece of body) {
    if (looked) {
      yield piece;
      continue;
    }
    kept.push(piece);
    bytes += piece.length;
    if (bytes < mostPackedBytes) continue;
    looked = true;
    yield* look();
  }
  if (!looked) yield* look();

  function* look(): Generator<Buffer> {
    const packed = Buffer.concat(kept);
    search(tryUnpack(unpack, packed), registry, found);
    // The packed form itself may be plain, if its name lies.
    search(packed, registry, found);
    yield* kept;
  }
}

/** What cannot be unpacked cannot be read by the server either. */
function tryUnpack(unpack: (bytes: Buffer) => Buffer, packed: Buffer): Buffer {
  try {
    return unpack(packed);
  } catch {
    return Buffer.alloc(0);
  }
}

const limits = { maxOutputLength: mostUnpackedBytes, finishFlush: constants.Z_SYNC_FLUSH };
const gunzip = (bytes: Buffer): Buffer => gunzipSync(bytes, limits);

const unpackers: Readonly<Record<string, ((bytes: Buffer) => Buffer) | undefined>> = {
  gzip: gunzip,
  'x-gzip': gunzip,
  // Some senders leave the wrapper of zlib out.
  deflate: (bytes) => {
    const [first = 0] = bytes;
    return (first & 15) === 8 ? inflateSync(bytes, limits) : inflateRawSync(bytes, limits);
  },
  br: (bytes) =>
    brotliDecompressSync(bytes, {
      maxOutputLength: mostUnpackedBytes,
      finishFlush: constants.BROTLI_OPERATION_FLUSH,
    }),
};
