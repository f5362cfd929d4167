/** Files inside a sandbox, by its own user. Paths are text, or bytes where a name is no UTF-8. */

import { createReadStream } from 'node:fs';
import { stat as hostStat, mkdir } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { dirname, resolve } from 'node:path';
import type { Hole } from '../lib/content-hash.ts';
import { decodeExtents } from '../porter/extents.ts';
import { decodeTree, encodeTree, type TreeEntry, type TreeSource } from '../porter/tree-stream.ts';
import { treeContentType } from '../protocol/client-header.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { EntryView, StatView, WatchView } from '../protocol/views.ts';
import { type Camelled, camelled } from './case.ts';
import { type DaemonClient, segment } from './client.ts';
import { readHostTree, requireFewHoles } from './host-tree.ts';
import { readSse } from './sse.ts';
import { readAll } from './transport.ts';
import { writeHostFile } from './write-file.ts';
import { type WrittenTree, writeTree } from './write-tree.ts';

export type BoxPath = string | Uint8Array;
export type FileInfo = Camelled<StatView>;
export type FileEntry = Camelled<EntryView>;
export type FileChange = Camelled<WatchView>;

interface Cancel {
  readonly signal?: AbortSignal;
}

export interface WriteFileOptions extends Cancel {
  /** Exactly this one; else that of the file that is there, or 0644. */
  readonly mode?: number;
  /** `replace` (the default) and `new` put the file there only when all of it arrived. */
  readonly how?: 'replace' | 'truncate' | 'append' | 'new';
}

export class SandboxFiles {
  readonly #client: DaemonClient;
  readonly #path: string;

  constructor(client: DaemonClient, sandbox: string) {
    this.#client = client;
    this.#path = `/v1/sandboxes/${segment(sandbox)}/files`;
  }

  /** The whole file, or a part of it, in memory. */
  async read(
    path: BoxPath,
    options: Cancel & { readonly offset?: number; readonly length?: number } = {},
  ): Promise<Buffer> {
    return await readAll(await this.#content(path, options));
  }

  async readText(path: BoxPath, options: Cancel = {}): Promise<string> {
    return (await this.read(path, options)).toString('utf8');
  }

  /** As it is taken: what nobody takes is not read inside either. */
  async *stream(
    path: BoxPath,
    options: Cancel & { readonly offset?: number; readonly length?: number } = {},
  ): AsyncGenerator<Buffer> {
    yield* (await this.#content(path, options)) as AsyncIterable<Buffer>;
  }

  /** The same with holes of the file as such: a file of 1 TiB without data is there at once. */
  async *pieces(
    path: BoxPath,
    options: Cancel & { readonly offset?: number; readonly length?: number } = {},
  ): AsyncGenerator<Buffer | Hole> {
    const { offset = 0, length } = options;
    const answer = await this.#content(path, { ...options, holes: true });
    try {
      yield* decodeExtents(chunksOf(answer), offset, length === undefined ? undefined : offset + length);
    } finally {
      answer.destroy();
    }
  }

  async write(
    path: BoxPath,
    content: string | Uint8Array | AsyncIterable<Uint8Array>,
    options: WriteFileOptions = {},
  ): Promise<FileInfo> {
    const { mode, how, signal } = options;
    const body =
      typeof content === 'string' || content instanceof Uint8Array ? Buffer.from(content as string) : content;
    const view = await this.#client.upload<StatView>(`${this.#path}/content`, body, {
      query: { path: bytes(path), mode, how },
      contentType: 'application/octet-stream',
      ...(signal === undefined ? {} : { signal }),
    });
    return camelled(view);
  }

  async stat(path: BoxPath, options: Cancel & { readonly followLinks?: boolean } = {}): Promise<FileInfo> {
    const { followLinks: follow, ...cancel } = options;
    const query = { path: bytes(path), follow };
    return camelled(await this.#client.json<StatView>('GET', `${this.#path}/stat`, { query, ...cancel }));
  }

  /** With `details` also size, mode, owner and time of each. */
  async list(
    path: BoxPath,
    options: Cancel & { readonly details?: boolean } = {},
  ): Promise<readonly FileEntry[]> {
    const { details, ...cancel } = options;
    const query = { path: bytes(path), details };
    const { entries } = await this.#client.json<{ entries: EntryView[] }>('GET', `${this.#path}/list`, {
      query,
      ...cancel,
    });
    return entries.map((entry) => camelled(entry));
  }

  async mkdir(
    path: BoxPath,
    options: Cancel & { readonly mode?: number; readonly parents?: boolean } = {},
  ): Promise<void> {
    const { mode, parents, ...cancel } = options;
    await this.#post('mkdir', { path: word(path), mode, parents }, cancel);
  }

  async remove(path: BoxPath, options: Cancel & { readonly recursive?: boolean } = {}): Promise<void> {
    const { recursive, ...cancel } = options;
    await this.#post('remove', { path: word(path), recursive }, cancel);
  }

  async rename(from: BoxPath, to: BoxPath, options: Cancel = {}): Promise<void> {
    await this.#post('rename', { from: word(from), to: word(to) }, options);
  }

  async symlink(target: BoxPath, path: BoxPath, options: Cancel = {}): Promise<void> {
    await this.#post('symlink', { target: word(target), path: word(path) }, options);
  }

  async chmod(path: BoxPath, mode: number, options: Cancel = {}): Promise<void> {
    await this.#post('chmod', { path: word(path), mode }, options);
  }

  /** What changes, until the reader stops. The first is `ready`: from there on nothing is missed. */
  async *watch(
    path: BoxPath,
    options: Cancel & { readonly recursive?: boolean } = {},
  ): AsyncGenerator<FileChange> {
    const { recursive, ...cancel } = options;
    const answer = await this.#client.open('GET', `${this.#path}/watch`, {
      query: { path: bytes(path), recursive },
      ...cancel,
    });
    const stop = (): void => void answer.destroy();
    cancel.signal?.addEventListener('abort', stop, { once: true });
    try {
      for await (const { data } of readSse(answer)) yield camelled(JSON.parse(data) as WatchView);
    } catch (error) {
      if (cancel.signal?.aborted !== true) throw error;
    } finally {
      cancel.signal?.removeEventListener('abort', stop);
      answer.destroy();
    }
  }

  /** Puts entries into a directory that is there, each directory before what is in it. Resolves with how many. */
  async putTree(
    path: BoxPath,
    entries: AsyncIterable<TreeSource> | Iterable<TreeSource>,
    options: Cancel = {},
  ): Promise<number> {
    const answer = await this.#client.upload<{ entries: number }>(`${this.#path}/tree`, encodeTree(entries), {
      query: { path: bytes(path) },
      contentType: treeContentType,
      ...options,
    });
    return answer.entries;
  }

  /** Everything below a directory, each directory before what is in it. */
  async *getTree(path: BoxPath, options: Cancel = {}): AsyncGenerator<TreeEntry> {
    const answer = await this.#client.open('GET', `${this.#path}/tree`, {
      query: { path: bytes(path) },
      ...options,
    });
    try {
      yield* decodeTree({ data: () => chunksOf(answer), trust: (read) => read() });
    } finally {
      answer.destroy();
    }
  }

  /** A file or folder of this machine to `path`, which is its new name. */
  async upload(from: string, path: BoxPath, options: Cancel = {}): Promise<void> {
    const facts = await hostStat(from);
    if (facts.isDirectory()) {
      await this.mkdir(path, { parents: true, ...options });
      await this.putTree(path, readHostTree(resolve(from)), options);
    } else if (facts.isFile()) {
      requireFewHoles(from, facts);
      await this.write(path, createReadStream(from), { mode: facts.mode & 0o777, ...options });
    } else {
      throw new SallyportError('usage', `${from} is neither a file nor a folder`);
    }
  }

  /**
   * A file or folder of the sandbox to `to`, which is its new name. What would lead out of the tree is left out and told;
   * what is there is replaced.
   */
  async download(path: BoxPath, to: string, options: Cancel = {}): Promise<WrittenTree> {
    const { kind, mode } = await this.stat(path, options);
    if (kind === 'directory') {
      await mkdir(to, { recursive: true });
      return await writeTree(to, this.getTree(path, options));
    }
    await mkdir(dirname(resolve(to)), { recursive: true });
    await writeHostFile(to, this.pieces(path, options), mode & 0o777);
    return { entries: 1, skipped: [] };
  }

  async #content(
    path: BoxPath,
    options: Cancel & { readonly offset?: number; readonly length?: number; readonly holes?: boolean },
  ): Promise<IncomingMessage> {
    const { offset, length, holes, ...cancel } = options;
    return await this.#client.open('GET', `${this.#path}/content`, {
      query: { path: bytes(path), offset, length, holes },
      ...cancel,
    });
  }

  async #post(verb: string, body: object, options: Cancel): Promise<void> {
    await this.#client.json('POST', `${this.#path}/${verb}`, { body, ...options });
  }
}

const bytes = (path: BoxPath): Buffer => Buffer.from(path as Uint8Array);

const word = (path: BoxPath): string | { readonly base64: string } =>
  typeof path === 'string' ? path : { base64: bytes(path).toString('base64') };

async function* chunksOf(answer: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    yield* answer as AsyncIterable<Buffer>;
  } catch (cause) {
    throw new SallyportError('daemon_gone', 'the connection to the daemon was lost', { cause });
  }
}
