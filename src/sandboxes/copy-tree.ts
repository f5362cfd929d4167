/**
 * A folder of the host as it is copied into a sandbox: without what is left out, in the order in which porter takes it. Links
 * are told and never followed, and what is below a folder that is left out is not even listed.
 */

import type { Dirent } from 'node:fs';
import { readdir, stat, statfs } from 'node:fs/promises';
import { FileChangedError, type HostEntry, hostEntry, joinPath, smallFileNow } from '../lib/host-tree.ts';
import { type CopyExcludes, ExcludeRules, isDockerSyntax } from '../policy/exclude-patterns.ts';
import { SallyportError } from '../protocol/errors.ts';

/** A file of patterns that is larger is none. */
const mostPatternBytes = 1024 * 1024;
const smallFileBytes = 64 * 1024;
/** Others get their turn after this long of blocking calls. */
const turnMs = 5;
/** Disks of this machine: ext, xfs, btrfs, f2fs, zfs, tmpfs, overlay. Calls to any other may never return. */
const localTypes: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x2fc12fc1, 0x01021994, 0x794c7630,
]);

export type CopyEntry = HostEntry & {
  /** All of a small file. */
  readonly content?: Buffer;
};

export interface Listed {
  readonly path: Buffer;
  readonly entry: Dirent<Buffer>;
  /** Left out itself, though something below it may not be. */
  readonly onlyBelow: boolean;
}

export interface Listing {
  readonly entries: readonly Listed[];
  /** Those that hold in this folder. */
  readonly rules: ExcludeRules;
}

/** One folder after the other, with what is not left out of it. */
export class CopyTree {
  readonly #root: Buffer;
  readonly #excludes: CopyExcludes;
  readonly #from: ReadonlySet<string>;

  constructor(root: string, excludes: CopyExcludes) {
    this.#root = Buffer.from(root);
    this.#excludes = excludes;
    this.#from = new Set(excludes.from);
  }

  async top(): Promise<Listing> {
    const root = Buffer.alloc(0);
    let rules = ExcludeRules.of(this.#excludes);
    // Each of them must be there: whoever names one relies on what it leaves out.
    for (const name of this.#from) rules = await this.#withFile(rules, root, name);
    return this.#judged(root, await this.#names(root), rules);
  }

  async below(folder: Buffer, above: ExcludeRules): Promise<Listing> {
    const found = await this.#names(folder);
    let rules = above;
    for (const entry of found) {
      const name = entry.name.toString('utf8');
      if (!this.#from.has(name) || !entry.isFile() || isDockerSyntax(name)) continue;
      rules = await this.#withFile(rules, folder, name);
    }
    return this.#judged(folder, found, rules);
  }

  absolute(path: Buffer): Buffer {
    return joinPath(this.#root, path);
  }

  async *entries(): AsyncGenerator<CopyEntry> {
    const turns: Turns = { device: await localDevice(this.#root), beganMs: performance.now() };
    yield* this.#walk(await this.top(), [], turns);
  }

  /** `waiting`: folders that are told only if something in them is. */
  async *#walk({ entries, rules }: Listing, waiting: Buffer[], turns: Turns): AsyncGenerator<CopyEntry> {
    for (const listed of entries) {
      const entry = await this.#load(listed, turns);
      if (!listed.onlyBelow) {
        for (const folder of waiting.splice(0)) yield await this.#look(folder);
        yield entry;
      }
      if (entry.kind !== 'directory') continue;
      if (listed.onlyBelow) waiting.push(listed.path);
      yield* this.#walk(await this.below(listed.path, rules), waiting, turns);
      if (waiting.at(-1) === listed.path) waiting.pop();
    }
  }

  async #load({ path, entry }: Listed, turns: Turns): Promise<CopyEntry> {
    if (turns.device === undefined || !entry.isFile()) return await this.#look(path);
    if (performance.now() - turns.beganMs > turnMs) {
      await new Promise((resolve) => setImmediate(resolve));
      turns.beganMs = performance.now();
    }
    try {
      const options = { mostBytes: smallFileBytes, device: turns.device };
      return smallFileNow(this.absolute(path), path, options) ?? (await this.#look(path));
    } catch (cause) {
      throw copyFailure(path, cause);
    }
  }

  async #content(entry: Extract<HostEntry, { kind: 'file' }>): Promise<Buffer> {
    const chunks: Buffer[] = [];
    for await (const chunk of readable(entry)) chunks.push(chunk);
    return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
  }

  async #look(path: Buffer): Promise<HostEntry> {
    try {
      return await hostEntry(this.absolute(path), path);
    } catch (cause) {
      throw copyFailure(path, cause);
    }
  }

  #judged(folder: Buffer, found: readonly Dirent<Buffer>[], rules: ExcludeRules): Listing {
    const entries = found.flatMap((entry): readonly Listed[] => {
      const path = joinPath(folder, entry.name);
      const verdict = rules.verdict(path, entry.isDirectory());
      return verdict === 'out' ? [] : [{ path, entry, onlyBelow: verdict === 'look' }];
    });
    return { entries, rules };
  }

  async #names(folder: Buffer): Promise<readonly Dirent<Buffer>[]> {
    try {
      const path = folder.length === 0 ? this.#root : this.absolute(folder);
      const entries = (await readdir(path, { encoding: 'buffer', withFileTypes: true })) as Dirent<Buffer>[];
      return entries.sort((a, b) => Buffer.compare(a.name, b.name));
    } catch (cause) {
      throw copyFailure(folder, cause);
    }
  }

  async #withFile(rules: ExcludeRules, folder: Buffer, name: string): Promise<ExcludeRules> {
    const path = joinPath(folder, Buffer.from(name));
    const entry = await this.#patternFile(path);
    if (entry.sizeBytes > mostPatternBytes) throw noPatternFile(this.absolute(path), 'is larger than 1 MiB');
    return rules.withFile(folder, name, await this.#content(entry));
  }

  async #patternFile(path: Buffer): Promise<Extract<HostEntry, { kind: 'file' }>> {
    const absolute = this.absolute(path);
    try {
      const entry = await hostEntry(absolute, path);
      if (entry.kind === 'file') return entry;
    } catch (cause) {
      if (codeOf(cause) === 'ENOENT') throw noPatternFile(absolute, 'is not there');
      throw copyFailure(path, cause);
    }
    throw noPatternFile(absolute, 'is no plain file');
  }
}

interface Turns {
  /** Of the tree's file system, where blocking calls are safe. */
  readonly device: bigint | undefined;
  beganMs: number;
}

async function localDevice(root: Buffer): Promise<bigint | undefined> {
  try {
    const { type } = await statfs(root);
    return localTypes.has(type) ? (await stat(root, { bigint: true })).dev : undefined;
  } catch (cause) {
    throw copyFailure(Buffer.alloc(0), cause);
  }
}

/** The bytes of a file, with failures that name it. */
export async function* readable(entry: Extract<HostEntry, { kind: 'file' }>): AsyncGenerator<Buffer> {
  try {
    yield* entry.chunks();
  } catch (cause) {
    throw copyFailure(entry.path, cause);
  }
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | undefined)?.code;

export function copyFailure(path: Buffer, cause: unknown): unknown {
  const shown = path.length === 0 ? 'the folder itself' : path.toString('utf8');
  const code = codeOf(cause);
  if (cause instanceof FileChangedError || code === 'ENOENT' || code === 'ELOOP' || code === 'ENXIO') {
    return new SallyportError('copy_changed', `${shown} changed while it was copied`, {
      details: { path: shown },
      cause,
    });
  }
  if (code !== 'EACCES' && code !== 'EPERM') return cause;
  return new SallyportError('copy_unreadable', `${shown} is to be copied and cannot be read`, {
    details: { path: shown },
    cause,
  });
}

function noPatternFile(path: Buffer, what: string): SallyportError {
  const shown = path.toString('utf8');
  return new SallyportError('refused_by_policy', `exclude_from: ${shown} ${what}`, {
    details: { field: 'exclude_from', path: shown },
    advice: 'Name a file that is at the root of what is copied, or leave it out.',
  });
}

/** Reads one file that is copied alone. */
export async function singleFile(path: string): Promise<Extract<HostEntry, { kind: 'file' }>> {
  const absolute = Buffer.from(path);
  try {
    const entry = await hostEntry(absolute, absolute);
    if (entry.kind === 'file') return entry;
    throw new FileChangedError(absolute);
  } catch (cause) {
    throw copyFailure(absolute, cause);
  }
}
