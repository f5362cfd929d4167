/** Trees as the callers of `Files` and both ends of the API see them: entries with a body, both ways. */

import type { Hole } from '../lib/content-hash.ts';
import { withZeros } from '../lib/holes.ts';
import {
  encodeTreeHeader,
  isTreePath,
  type PutHeader,
  TreeDecoder,
  type TreeEvent,
  type TreeHeader,
} from './tree-records.ts';

export interface TreeEntry extends TreeHeader {
  /** Of a file. To be read before the next entry is asked for; what is not read by then is thrown away. */
  readonly body: AsyncIterable<Buffer>;
  /** The same with its holes as such; to be read instead of `body`. */
  readonly pieces: AsyncIterable<Buffer | Hole>;
  /** The same at once, where all of it is there already: of most small files. */
  readonly content?: Buffer;
}

export type TreeSource =
  | {
      readonly kind: 'file';
      readonly path: string | Uint8Array;
      readonly mode?: number;
      readonly mtimeNs?: bigint;
      readonly body: Uint8Array | { readonly sizeBytes: number; readonly chunks: AsyncIterable<Uint8Array> };
    }
  | {
      readonly kind: 'directory';
      readonly path: string | Uint8Array;
      readonly mode?: number;
      readonly mtimeNs?: bigint;
    }
  | {
      readonly kind: 'link';
      readonly path: string | Uint8Array;
      readonly target: string | Uint8Array;
      readonly mtimeNs?: bigint;
    }
  | {
      /** Another name of a file that came before. */
      readonly kind: 'hardlink';
      readonly path: string | Uint8Array;
      /** Relative to the tree's root. */
      readonly target: string | Uint8Array;
    };

/** Where records come from: porter, or the other end of the API. */
export interface TreeChunks {
  data(): AsyncIterable<Buffer>;
  /** Runs what takes the records apart, and says what is wrong with them. */
  trust<T>(read: () => T): T;
}

const batchBytes = 32 * 1024;

const buffer = (value: string | Uint8Array): Buffer => Buffer.from(value as Uint8Array);

function headerOf(source: TreeSource): PutHeader {
  const path = buffer(source.path);
  if (!isTreePath(path))
    throw new RangeError(`not a relative path inside the tree: ${path.toString('utf8')}`);
  const mtimeNs = source.kind === 'hardlink' ? 0n : (source.mtimeNs ?? 0n);
  const standard = { path, mtimeNs, sizeBytes: 0, target: Buffer.alloc(0) };
  switch (source.kind) {
    case 'file': {
      const { body } = source;
      const sizeBytes = body instanceof Uint8Array ? body.length : body.sizeBytes;
      return { ...standard, kind: 'file', mode: source.mode ?? 0o644, sizeBytes };
    }
    case 'directory':
      return { ...standard, kind: 'directory', mode: source.mode ?? 0o755 };
    case 'link':
      return { ...standard, kind: 'link', mode: 0o777, target: buffer(source.target) };
    case 'hardlink':
      return { ...standard, kind: 'hardlink', mode: 0, target: buffer(source.target) };
  }
}

async function* bodyOf(source: TreeSource, header: PutHeader): AsyncGenerator<Uint8Array> {
  if (source.kind !== 'file' || source.body instanceof Uint8Array) return;
  let left = header.sizeBytes;
  for await (const chunk of source.body.chunks) {
    left -= chunk.length;
    if (left < 0) break;
    yield chunk;
  }
  // The size is told already: a file of another size would be taken for the next record.
  if (left !== 0) throw new RangeError(`${header.path.toString('utf8')} changed its size while it was read`);
}

/** The stream of records, in pieces that are neither tiny nor large. */
export async function* encodeTree(
  sources: AsyncIterable<TreeSource> | Iterable<TreeSource>,
): AsyncGenerator<Buffer> {
  let parts: Uint8Array[] = [];
  let bytes = 0;
  const take = (): Buffer => {
    const all = Buffer.concat(parts, bytes);
    parts = [];
    bytes = 0;
    return all;
  };
  const add = (part: Uint8Array): boolean => {
    parts.push(part);
    bytes += part.length;
    return bytes >= batchBytes;
  };
  for await (const source of sources) {
    const header = headerOf(source);
    let full = add(encodeTreeHeader(header));
    if (source.kind === 'file' && source.body instanceof Uint8Array) full = add(source.body);
    if (full) yield take();
    for await (const chunk of bodyOf(source, header)) {
      if (add(chunk)) yield take();
    }
  }
  if (bytes > 0) yield take();
}

/** The entries as they come. A reader that stops early ends the source as well. */
export async function* decodeTree(stream: TreeChunks): AsyncGenerator<TreeEntry> {
  const events = new TreeEvents(stream);
  try {
    for (let event = await events.next(); event !== undefined; ) {
      if (event.type === 'entry') yield* withBody(event.header, events);
      event = events.ready() ?? (await events.next());
    }
  } finally {
    await events.close();
  }
}

async function* withBody(header: TreeHeader, events: TreeEvents): AsyncGenerator<TreeEntry> {
  const content = wholeBody(header, events);
  if (content !== undefined) {
    yield { ...header, content, body: only(content), pieces: only(content) };
    return;
  }
  let left = header.isUnsent === true ? 0 : header.sizeBytes;
  const read = async function* (): AsyncGenerator<Buffer | Hole> {
    while (left > 0) {
      const piece = events.ready() ?? (await events.next());
      if (piece === undefined || piece.type === 'entry') return;
      left -= piece.type === 'hole' ? piece.bytes : piece.data.length;
      yield piece.type === 'body' ? piece.data : { holeBytes: piece.bytes };
    }
  };
  const pieces = read();
  const body = withZeros(pieces);
  yield {
    ...header,
    body: { [Symbol.asyncIterator]: () => body },
    pieces: { [Symbol.asyncIterator]: () => pieces },
  };
  // What was not read; the reader may have ended its own half.
  for await (const _ of pieces);
  for await (const _ of read());
}

/** Undefined: it is not all there yet, or comes in pieces. */
function wholeBody({ kind, sizeBytes, isUnsent }: TreeHeader, events: TreeEvents): Buffer | undefined {
  if (kind !== 'file' || sizeBytes === 0 || isUnsent === true) return Buffer.alloc(0);
  const first = events.peek();
  if (first?.type !== 'body' || first.data.length !== sizeBytes) return undefined;
  events.ready();
  return first.data;
}

async function* only(content: Buffer): AsyncGenerator<Buffer> {
  if (content.length > 0) yield content;
}

/** What a chunk holds is at hand without waiting: a wait for each of many small entries would take longer than all the rest. */
class TreeEvents {
  readonly #stream: TreeChunks;
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #decoder = new TreeDecoder();
  #events: readonly TreeEvent[] = [];
  #at = 0;

  constructor(stream: TreeChunks) {
    this.#stream = stream;
    this.#chunks = stream.data()[Symbol.asyncIterator]();
  }

  peek(): TreeEvent | undefined {
    return this.#events[this.#at];
  }

  /** Undefined: one has to wait for it. */
  ready(): TreeEvent | undefined {
    const event = this.peek();
    if (event !== undefined) this.#at++;
    return event;
  }

  /** Undefined: there are no more. */
  async next(): Promise<TreeEvent | undefined> {
    while (this.peek() === undefined) {
      const chunk = await this.#chunks.next();
      if (chunk.done === true) {
        this.#stream.trust(() => this.#decoder.end());
        return undefined;
      }
      this.#events = this.#stream.trust(() => [...this.#decoder.push(chunk.value)]);
      this.#at = 0;
    }
    return this.ready();
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }
}
