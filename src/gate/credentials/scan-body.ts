/**
 * Bodies that leave a sandbox, searched for phantoms. Plain bodies are searched to their end as they pass. Of a compressed one
 * the first mebibyte is unpacked, to 16 MiB at most, and searched before any of it leaves; what is beyond passes unsearched.
 */

import type { Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import { openEnd } from './held-stream.ts';
import { type PhantomOwner, type PhantomRegistry, phantomBytes, phantomMark } from './phantoms.ts';

const mostPackedBytes = 2 ** 20;
const mostUnpackedBytes = 16 * 2 ** 20;
const mark = Buffer.from(phantomMark);

export interface ScanOptions {
  /** Of the sandbox. */
  readonly budget?: UnpackBudget | undefined;
  /** Nobody wants the body any more. */
  readonly signal?: AbortSignal | undefined;
}

/** Few bodies are held at once, one is unpacked at a time, and so many bytes a second. */
interface UnpackBudget {
  hold(signal?: AbortSignal): Promise<() => void>;
  unpack<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  unpacked(bytes: number, signal?: AbortSignal): Promise<void>;
}

/** Undefined: there it may be. */
export type Found = (owner: PhantomOwner) => Error | undefined;

export function scanned(
  body: AsyncIterable<Buffer>,
  coding: string | undefined,
  registry: PhantomRegistry,
  found: Found,
  options: ScanOptions = {},
): AsyncIterable<Buffer> {
  const unpacker = unpackers[coding ?? ''];
  return unpacker === undefined
    ? scanPlain(body, registry, found)
    : scanPacked(body, unpacker, registry, found, options);
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
  unpacker: Unpacker,
  registry: PhantomRegistry,
  found: Found,
  { budget, signal }: ScanOptions,
): AsyncGenerator<Buffer> {
  const leave = await budget?.hold(signal);
  try {
    const rest = body[Symbol.asyncIterator]();
    const kept = await collect(rest);
    const packed = Buffer.concat(kept);
    const work = (): Promise<void> =>
      searchUnpacked(unpacker(packed), packed, registry, found, { budget, signal });
    await (budget === undefined ? work() : budget.unpack(work, signal));
    // The packed form itself may be plain, if its name lies.
    search(packed, registry, found);
    leave?.();
    yield* kept;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    leave?.();
  }
}

/** As much as is searched, or all there is. */
async function collect(body: AsyncIterator<Buffer>): Promise<readonly Buffer[]> {
  const kept: Buffer[] = [];
  for (let bytes = 0; bytes < mostPackedBytes; ) {
    const next = await body.next();
    if (next.done === true) break;
    kept.push(next.value);
    bytes += next.value.length;
  }
  return kept;
}

/** Piece by piece, so that a body that unpacks to a thousand times its size holds nobody else up. */
async function searchUnpacked(
  out: Transform,
  packed: Buffer,
  registry: PhantomRegistry,
  found: Found,
  { budget, signal }: ScanOptions,
): Promise<void> {
  // It may fail after nobody reads it any more.
  out.on('error', () => {});
  out.end(packed);
  let held: Buffer = Buffer.alloc(0);
  let bytes = 0;
  try {
    for await (const piece of readable(out)) {
      signal?.throwIfAborted();
      const data = held.length === 0 ? piece : Buffer.concat([held, piece]);
      const open = search(data, registry, found);
      held = data.subarray(data.length - open);
      bytes += piece.length;
      if (bytes >= mostUnpackedBytes) return;
      await budget?.unpacked(piece.length, signal);
    }
  } finally {
    out.destroy();
  }
}

/** What cannot be unpacked cannot be read by the server either: it ends there. */
async function* readable(out: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const pieces = out[Symbol.asyncIterator]();
  for (;;) {
    const next = await pieces.next().catch(() => undefined);
    if (next === undefined || next.done === true) return;
    yield next.value;
  }
}

type Unpacker = (packed: Buffer) => Transform;

const limits = { finishFlush: constants.Z_SYNC_FLUSH, chunkSize: 64 * 1024 };
const gunzip: Unpacker = () => createGunzip(limits);

const unpackers: Readonly<Record<string, Unpacker | undefined>> = {
  gzip: gunzip,
  'x-gzip': gunzip,
  // Some senders leave the wrapper of zlib out.
  deflate: ([first = 0]) => ((first & 15) === 8 ? createInflate(limits) : createInflateRaw(limits)),
  br: () =>
    createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH, chunkSize: limits.chunkSize }),
};
