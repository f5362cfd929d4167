/**
 * Files inside the sandbox, by its own user: what `docs/protocol.md`, section 6 offers, as calls.
 *
 * Paths are bytes; a string is taken as UTF-8. Each call takes a signal that ends the operation inside. Porter does 32 at a
 * time; more wait here for their turn, and a watch or an iterator that is open holds its place.
 */

import { SallyportError } from '../protocol/errors.ts';
import { ExtentDecoder, encodeExtents } from './extents.ts';
import { type FileSubject, type SandboxPath, showPath } from './file-error.ts';
import { FileOperations, type OperationSource, operation } from './file-operations.ts';
import type { FileStream } from './file-stream.ts';
import { type DirectoryEntry, feed, pageEntries, readPage, refuse } from './file-transfer.ts';
import { PayloadWriter } from './payload.ts';
import { RecordDecoder } from './record-decoder.ts';
import { type FileStat, readStat } from './stat-record.ts';
import { mostTreeEntries, TreeDecoder } from './tree-records.ts';
import { decodeTree, encodeTree, type TreeEntry, type TreeSource } from './tree-stream.ts';

export interface FileOptions {
  readonly signal?: AbortSignal;
}

export interface WriteOptions extends FileOptions {
  /** Exactly this one; without it an existing file keeps its mode and a new one gets 0644. */
  readonly mode?: number;
  /** `replace` (the default) and `truncate` begin anew, `append` goes on, `new` refuses what is there. */
  readonly how?: 'replace' | 'truncate' | 'append' | 'new';
  /** Only a file that is there. */
  readonly mustExist?: boolean;
}

export interface WatchEvent {
  /** `ready` comes first: from there on nothing is missed. After `overflow` look at everything again. */
  readonly kind: 'created' | 'changed' | 'removed' | 'moved' | 'overflow' | 'ready';
  /** Relative to what is watched; empty for itself. */
  readonly path: Buffer;
}

const watchKinds = ['created', 'changed', 'removed', 'moved', 'overflow', 'ready'] as const;
const writeFlag = { create: 1, truncate: 2, append: 4, exclusive: 8, atomic: 16, setMode: 32 };
const maxPathBytes = 4096;
const toTheEnd = 2n ** 64n - 1n;

/** How much content a tree may have. Files beyond it come without, and say so (`isUnsent`). */
export interface TreeLimits {
  readonly fileBytes: number;
  /** Of all files together, in the order in which they come. */
  readonly totalBytes: number;
}

export class Files {
  readonly #operations: FileOperations;
  readonly #hasTreeLimits: boolean;
  readonly #readsHoles: boolean;

  constructor(source: OperationSource) {
    this.#hasTreeLimits = source.hasTreeLimits;
    this.#readsHoles = source.readsHoles;
    this.#operations = new FileOperations(source);
  }

  async stat(path: SandboxPath, options: FileOptions = {}): Promise<FileStat> {
    return await this.#stat(operation.stat, { operation: 'stat', path }, options);
  }

  /** Of a link itself, not of what it leads to. */
  async lstat(path: SandboxPath, options: FileOptions = {}): Promise<FileStat> {
    return await this.#stat(operation.lstat, { operation: 'lstat', path }, options);
  }

  /** In the order of the names' bytes, asked for page by page: of a directory that changes meanwhile, each page as it is then. */
  async *list(
    path: SandboxPath,
    options: FileOptions & { readonly most?: number } = {},
  ): AsyncGenerator<DirectoryEntry> {
    const subject = { operation: 'list', path };
    const { most = mostTreeEntries } = options;
    let count = 0;
    for (let after: Buffer = Buffer.alloc(0), more = true; more; ) {
      const fields = new PayloadWriter().bytes(path).u32(pageEntries).bytes(after);
      const stream = await this.#operations.start(operation.list, subject, fields, options);
      const page = await readPage(stream, after);
      const result = await stream.result;
      more = stream.trust(() => result.u32()) === 1;
      count += page.length;
      if (count > most) throw tooMany(path, most);
      yield* page;
      const last = page.at(-1);
      if (last === undefined) return;
      after = last.name;
    }
  }

  /** As it is taken: what nobody takes is not read inside either. */
  async *read(
    path: SandboxPath,
    options: FileOptions & { readonly offset?: number; readonly length?: number } = {},
  ): AsyncGenerator<Buffer> {
    const { offset = 0, length } = options;
    const fields = new PayloadWriter().bytes(path).u64(BigInt(offset));
    fields.u64(length === undefined ? toTheEnd : BigInt(length));
    const stream = await this.#operations.start(operation.read, { operation: 'read', path }, fields, options);
    let left = length ?? Number.POSITIVE_INFINITY;
    for await (const chunk of stream.data()) {
      left -= chunk.length;
      if (left < 0) stream.trust(() => refuse('more than was asked for'));
      yield chunk;
    }
  }

  /** The same as extents, for who hands them on: each was looked at before its bytes are given out. */
  async *readExtents(
    path: SandboxPath,
    options: FileOptions & { readonly offset?: number; readonly length?: number } = {},
  ): AsyncGenerator<Buffer> {
    const { offset = 0, length } = options;
    if (!this.#readsHoles) {
      yield* encodeExtents(this.read(path, options), offset);
      return;
    }
    const fields = new PayloadWriter().bytes(path).u64(BigInt(offset));
    fields.u64(length === undefined ? toTheEnd : BigInt(length)).u32(1);
    const stream = await this.#operations.start(operation.read, { operation: 'read', path }, fields, options);
    const decoder = new ExtentDecoder(offset, length === undefined ? undefined : offset + length);
    for await (const chunk of stream.data()) {
      stream.trust(() => {
        for (const _ of decoder.push(chunk)) {
          // What is wrong with an extent is thrown on the way.
        }
      });
      yield chunk;
    }
    stream.trust(() => decoder.end());
  }

  /** The whole file, which must not be larger than `limitBytes`. */
  async readAll(path: SandboxPath, limitBytes: number, options: FileOptions = {}): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of this.read(path, { ...options, length: limitBytes + 1 })) {
      chunks.push(chunk);
      bytes += chunk.length;
    }
    if (bytes <= limitBytes) return Buffer.concat(chunks, bytes);
    const shown = showPath(path);
    throw new SallyportError('file_invalid', `read ${shown}: it is larger than ${limitBytes} bytes`, {
      details: { path: shown, operation: 'read', limitBytes },
      advice: 'Read it in parts, or as a stream.',
    });
  }

  /** By `replace` and `new` the file is there only when all of it is, and what is there until then stays whole. */
  async write(
    path: SandboxPath,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    options: WriteOptions = {},
  ): Promise<FileStat> {
    const fields = new PayloadWriter().bytes(path).u32(writeFlags(options));
    fields.u32(options.mode ?? 0o644);
    const subject = { operation: 'write', path };
    const stream = await this.#operations.start(operation.write, subject, fields, options);
    await feed(stream, content instanceof Uint8Array ? [content] : content);
    const result = await stream.result;
    return stream.trust(() => readStat(result));
  }

  async mkdir(
    path: SandboxPath,
    options: FileOptions & { readonly mode?: number; readonly parents?: boolean } = {},
  ): Promise<void> {
    const { mode = 0o755, parents = false } = options;
    const fields = new PayloadWriter()
      .bytes(path)
      .u32(mode)
      .u32(parents ? 1 : 0);
    await this.#run(operation.mkdir, { operation: 'mkdir', path }, fields, options);
  }

  /** Never follows a link. Resolves with how many were removed. */
  async remove(
    path: SandboxPath,
    options: FileOptions & { readonly recursive?: boolean } = {},
  ): Promise<number> {
    const fields = new PayloadWriter().bytes(path).u32(options.recursive === true ? 1 : 0);
    const stream = await this.#run(operation.remove, { operation: 'remove', path }, fields, options);
    const result = await stream.result;
    return stream.trust(() => result.u64());
  }

  async rename(from: SandboxPath, to: SandboxPath, options: FileOptions = {}): Promise<void> {
    const fields = new PayloadWriter().bytes(from).bytes(to);
    await this.#run(operation.rename, { operation: 'rename', path: from }, fields, options);
  }

  async symlink(target: SandboxPath, path: SandboxPath, options: FileOptions = {}): Promise<void> {
    const fields = new PayloadWriter().bytes(target).bytes(path);
    await this.#run(operation.symlink, { operation: 'symlink', path }, fields, options);
  }

  async readlink(path: SandboxPath, options: FileOptions = {}): Promise<Buffer> {
    const fields = new PayloadWriter().bytes(path);
    const stream = await this.#run(operation.readlink, { operation: 'readlink', path }, fields, options);
    const result = await stream.result;
    return stream.trust(() => result.bytes());
  }

  async chmod(path: SandboxPath, mode: number, options: FileOptions = {}): Promise<void> {
    const fields = new PayloadWriter().bytes(path).u32(mode);
    await this.#run(operation.chmod, { operation: 'chmod', path }, fields, options);
  }

  /** Until the reader stops, the signal says so, or what is watched is removed. */
  async *watch(
    path: SandboxPath,
    options: FileOptions & { readonly recursive?: boolean } = {},
  ): AsyncGenerator<WatchEvent> {
    const fields = new PayloadWriter().bytes(path).u32(options.recursive === true ? 1 : 0);
    const subject = { operation: 'watch', path };
    const stream = await this.#operations.start(operation.watch, subject, fields, options);
    const decoder = new RecordDecoder(maxPathBytes);
    for await (const chunk of stream.data()) {
      for (const { kind, bytes } of stream.trust(() => [...decoder.push(chunk)])) {
        yield { kind: watchKinds[kind - 1] ?? stream.trust(() => refuse(`watch kind ${kind}`)), path: bytes };
      }
    }
    stream.trust(() => decoder.end());
  }

  /** Puts entries into a directory that is there, each directory before what is in it. Resolves with how many. */
  async putTree(
    path: SandboxPath,
    entries: AsyncIterable<TreeSource> | Iterable<TreeSource>,
    options: FileOptions = {},
  ): Promise<number> {
    return await this.putRecords(path, encodeTree(entries), options);
  }

  /** The same for entries that are a stream of records already. */
  async putRecords(
    path: SandboxPath,
    records: AsyncIterable<Uint8Array>,
    options: FileOptions = {},
  ): Promise<number> {
    const subject = { operation: 'put tree', path };
    const fields = new PayloadWriter().bytes(path);
    const stream = await this.#operations.start(operation.putTree, subject, fields, options);
    await feed(stream, records);
    const result = await stream.result;
    return stream.trust(() => result.u64());
  }

  /** Everything below a directory, each directory before what is in it. */
  async *getTree(
    path: SandboxPath,
    options: FileOptions & { readonly limits?: TreeLimits } = {},
  ): AsyncGenerator<TreeEntry> {
    yield* decodeTree(await this.#startGetTree(path, options));
  }

  /** The same as a stream of records, for who hands it on: every record was looked at before its bytes are given out. */
  async *getRecords(path: SandboxPath, options: FileOptions = {}): AsyncGenerator<Buffer> {
    const stream = await this.#startGetTree(path, options);
    const decoder = new TreeDecoder();
    for await (const chunk of stream.data()) {
      stream.trust(() => {
        for (const _ of decoder.push(chunk)) {
          // What is wrong with a record is thrown on the way.
        }
      });
      yield chunk;
    }
    stream.trust(() => decoder.end());
  }

  async #startGetTree(
    path: SandboxPath,
    options: FileOptions & { readonly limits?: TreeLimits },
  ): Promise<FileStream> {
    const subject = { operation: 'get tree', path };
    const fields = new PayloadWriter().bytes(path);
    if (this.#hasTreeLimits) {
      const { limits } = options;
      fields.u32(1).u64(limits === undefined ? toTheEnd : BigInt(limits.fileBytes));
      fields.u64(limits === undefined ? toTheEnd : BigInt(limits.totalBytes));
    }
    return await this.#operations.start(operation.getTree, subject, fields, options);
  }

  async #stat(number: number, subject: FileSubject, options: FileOptions): Promise<FileStat> {
    const stream = await this.#run(number, subject, new PayloadWriter().bytes(subject.path), options);
    const result = await stream.result;
    return stream.trust(() => readStat(result));
  }

  async #run(
    number: number,
    subject: FileSubject,
    fields: PayloadWriter,
    options: FileOptions,
  ): Promise<FileStream> {
    const stream = await this.#operations.start(number, subject, fields, options);
    await stream.result;
    return stream;
  }
}

/** Whoever asked may keep all of them. */
function tooMany(path: SandboxPath, most: number): SallyportError {
  const shown = showPath(path);
  return new SallyportError('file_invalid', `list ${shown}: it has more than ${most} entries`, {
    details: { path: shown, operation: 'list', most },
    advice: 'List it inside: `sally exec <name> -- find <path>`.',
  });
}

function writeFlags({ how = 'replace', mustExist = false, mode }: WriteOptions): number {
  const flags = {
    replace: writeFlag.atomic,
    truncate: writeFlag.truncate,
    append: writeFlag.append,
    new: writeFlag.atomic | writeFlag.exclusive,
  };
  return flags[how] | (mustExist ? 0 : writeFlag.create) | (mode === undefined ? 0 : writeFlag.setMode);
}
