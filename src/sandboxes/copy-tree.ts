/**
 * A folder of the host as it is copied into a sandbox: without what is left out, in the order in which porter takes it. Links
 * are told and never followed, and what is below a folder that is left out is not even listed.
 *
 * SECURITY: a sandbox may have the same folder live, and swap folders in it. `entries` goes from open folder to open folder, so
 * that nothing outside of the tree is read. `top` and `below` go by path: they serve to say early what could not be copied.
 */

import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { HoleBound, TooManyHolesError } from '../lib/hole-bound.ts';
import {
  FileChangedError,
  type HostEntry,
  hostEntry,
  joinPath,
  type LoadedEntry,
  smallFileNow,
} from '../lib/host-tree.ts';
import { localDevice } from '../lib/local-disk.ts';
import { OpenFolder } from '../lib/open-folder.ts';
import { Turns } from '../lib/turns.ts';
import type { PatternFile } from '../policy/copied-excludes.ts';
import { type CopyExcludes, ExcludeRules, isDockerSyntax } from '../policy/exclude-patterns.ts';
import { SallyportError } from '../protocol/errors.ts';
import { HostWalk } from './host-walk.ts';

/** A file of patterns that is larger is none. */
const mostPatternBytes = 1024 * 1024;
const smallFileBytes = 64 * 1024;

export type CopyEntry = LoadedEntry;

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
  readonly #onPatterns: (file: PatternFile) => void;

  /** `onPatterns` is told of each file of patterns that counts, before anything that it is about. */
  constructor(root: string, excludes: CopyExcludes, onPatterns: (file: PatternFile) => void = () => {}) {
    this.#root = Buffer.from(root);
    this.#excludes = excludes;
    this.#from = new Set(excludes.from);
    this.#onPatterns = onPatterns;
  }

  /** `at`: where the folder is, if that is known better than by its path. */
  async top(at: Buffer = this.#root): Promise<Listing> {
    const root = Buffer.alloc(0);
    let rules = ExcludeRules.of(this.#excludes);
    // Each of them must be there: whoever names one relies on what it leaves out.
    for (const name of this.#from) rules = await this.#withFile(rules, root, name, at);
    return this.#judged(root, await this.#names(root, at), rules);
  }

  async below(folder: Buffer, above: ExcludeRules, at: Buffer = this.absolute(folder)): Promise<Listing> {
    const found = await this.#names(folder, at);
    let rules = above;
    for (const entry of found) {
      const name = entry.name.toString('utf8');
      if (!this.#from.has(name) || !entry.isFile() || isDockerSyntax(name)) continue;
      rules = await this.#withFile(rules, folder, name, at);
    }
    return this.#judged(folder, found, rules);
  }

  absolute(path: Buffer): Buffer {
    return joinPath(this.#root, path);
  }

  async *entries(): AsyncGenerator<CopyEntry> {
    const root = await openRoot(this.#root);
    try {
      const state: WalkState = {
        waiting: [],
        device: await localDevice(root.path),
        turns: new Turns(),
        holes: new HoleBound(),
      };
      yield* this.#walk(await this.top(root.path), root, state);
    } finally {
      root.close();
    }
  }

  async *#walk({ entries, rules }: Listing, folder: OpenFolder, state: WalkState): AsyncGenerator<CopyEntry> {
    const { waiting } = state;
    for (const listed of entries) {
      const { path, entry: found, onlyBelow } = listed;
      const at = folder.child(found.name);
      const entry = await this.#load(listed, at, state);
      if (entry.kind === 'file') requireFewHoles(entry, state.holes);
      if (!onlyBelow) {
        for (const parent of waiting.splice(0)) yield await this.#look(parent.path, parent.at);
        yield entry;
      }
      if (entry.kind !== 'directory') continue;
      if (onlyBelow) waiting.push({ path, at });
      const inner = opened(path, () => folder.enter(found.name));
      try {
        yield* this.#walk(await this.below(path, rules, inner.path), inner, state);
      } finally {
        inner.close();
      }
      if (waiting.at(-1)?.path === path) waiting.pop();
    }
  }

  async #load({ path, entry }: Listed, at: Buffer, { device, turns }: WalkState): Promise<CopyEntry> {
    if (device === undefined || !entry.isFile()) return await this.#look(path, at);
    await turns.take();
    try {
      const options = { mostBytes: smallFileBytes, device };
      return smallFileNow(at, path, options) ?? (await this.#look(path, at));
    } catch (cause) {
      throw copyFailure(path, cause);
    }
  }

  async #content(entry: Extract<HostEntry, { kind: 'file' }>): Promise<Buffer> {
    const chunks: Buffer[] = [];
    for await (const chunk of readable(entry)) chunks.push(chunk);
    return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
  }

  async #look(path: Buffer, at: Buffer): Promise<HostEntry> {
    try {
      return await hostEntry(at, path);
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

  async #names(folder: Buffer, at: Buffer): Promise<readonly Dirent<Buffer>[]> {
    try {
      const entries = (await readdir(at, { encoding: 'buffer', withFileTypes: true })) as Dirent<Buffer>[];
      return entries.sort((a, b) => Buffer.compare(a.name, b.name));
    } catch (cause) {
      throw copyFailure(folder, cause);
    }
  }

  async #withFile(
    rules: ExcludeRules,
    folder: Buffer,
    name: string,
    folderAt: Buffer,
  ): Promise<ExcludeRules> {
    const path = joinPath(folder, Buffer.from(name));
    const entry = await this.#patternFile(path, joinPath(folderAt, Buffer.from(name)));
    if (entry.sizeBytes > mostPatternBytes) throw noPatternFile(this.absolute(path), 'is larger than 1 MiB');
    const content = await this.#content(entry);
    this.#onPatterns({ folder, name, content });
    return rules.withFile(folder, name, content);
  }

  async #patternFile(path: Buffer, at: Buffer): Promise<Extract<HostEntry, { kind: 'file' }>> {
    const absolute = this.absolute(path);
    try {
      const entry = await hostEntry(at, path);
      if (entry.kind === 'file') return entry;
    } catch (cause) {
      if (codeOf(cause) === 'ENOENT') throw noPatternFile(absolute, 'is not there');
      throw copyFailure(path, cause);
    }
    throw noPatternFile(absolute, 'is no plain file');
  }
}

interface WalkState {
  /** Folders that are told only if something in them is. */
  readonly waiting: { readonly path: Buffer; readonly at: Buffer }[];
  /** Of the tree's file system, where blocking calls are safe. */
  readonly device: bigint | undefined;
  readonly turns: Turns;
  readonly holes: HoleBound;
}

/** By no link: what was judged was a real path, and one that has a link in it by now leads elsewhere. */
async function openRoot(path: Buffer): Promise<OpenFolder> {
  const walk = new HostWalk();
  try {
    return OpenFolder.real(await walk.entry(path.toString('utf8')));
  } catch (cause) {
    throw copyFailure(Buffer.alloc(0), cause);
  } finally {
    await walk.close();
  }
}

function opened(path: Buffer, open: () => OpenFolder): OpenFolder {
  try {
    return open();
  } catch (cause) {
    throw copyFailure(path, cause);
  }
}

/** Before any of it is read. */
function requireFewHoles({ path, holeBytes }: Extract<HostEntry, { kind: 'file' }>, holes: HoleBound): void {
  try {
    holes.add(path.toString('utf8'), holeBytes);
  } catch (cause) {
    throw copyFailure(path, cause);
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

/** Something else is in its place by now. EINVAL: a link was to be read, and it is none. */
const changedCodes: ReadonlySet<string> = new Set(['ENOENT', 'ELOOP', 'ENOTDIR', 'ENXIO', 'EINVAL']);

export function copyFailure(path: Buffer, cause: unknown): unknown {
  const shown = path.length === 0 ? 'the folder itself' : path.toString('utf8');
  const code = codeOf(cause);
  if (cause instanceof FileChangedError || (code !== undefined && changedCodes.has(code))) {
    return new SallyportError('copy_changed', `${shown} changed while it was copied`, {
      details: { path: shown },
      cause,
    });
  }
  if (cause instanceof TooManyHolesError) {
    return new SallyportError('copy_too_large', cause.message, { details: { path: shown }, cause });
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

/** One file that is copied alone, reached by no link, for as long as `use` takes. */
export async function withSingleFile(
  path: string,
  use: (entry: Extract<HostEntry, { kind: 'file' }>) => Promise<void>,
): Promise<void> {
  const walk = new HostWalk();
  try {
    await use(await fileIn(walk, path));
  } finally {
    await walk.close();
  }
}

async function fileIn(walk: HostWalk, path: string): Promise<Extract<HostEntry, { kind: 'file' }>> {
  const absolute = Buffer.from(path);
  try {
    const entry = await hostEntry(Buffer.from(await walk.entry(path)), absolute);
    if (entry.kind !== 'file') throw new FileChangedError(absolute);
    requireFewHoles(entry, new HoleBound());
    return entry;
  } catch (cause) {
    throw copyFailure(absolute, cause);
  }
}
