/** Trees as the callers of `Files` and both ends of the API see them: entries with a body, both ways. */

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
  const events = treeEvents(stream);
  try {
    for (let next = await events.next(); next.done !== true; ) {
      const event = next.value;
      if (event.type === 'body') {
        next = await events.next();
        continue;
      }
      let left = event.header.sizeBytes;
      const body = async function* (): AsyncGenerator<Buffer> {
        while (left > 0) {
          const piece = await events.next();
          if (piece.done === true || piece.value.type !== 'body') return;
          left -= piece.value.data.length;
          yield piece.value.data;
        }
      };
      const reading = body();
      yield { ...event.header, body: { [Symbol.asyncIterator]: () => reading } };
      for await (const _ of reading) {
        // What was not read.
      }
      while (left > 0) left -= await skip(events);
      next = await events.next();
    }
  } finally {
    await events.return(undefined);
  }
}

async function skip(events: AsyncGenerator<TreeEvent>): Promise<number> {
  const piece = await events.next();
  return piece.done !== true && piece.value.type === 'body'
    ? piece.value.data.length
    : Number.POSITIVE_INFINITY;
}

async function* treeEvents(stream: TreeChunks): AsyncGenerator<TreeEvent> {
  const decoder = new TreeDecoder();
  for await (const chunk of stream.data()) yield* stream.trust(() => [...decoder.push(chunk)]);
  stream.trust(() => decoder.end());
}
