/**
 * Files of this machine into a sandbox, each to where it is expected there: below the working directory by its relative
 * path, others by their name.
 *
 * Whatever can be refused is refused before the first byte is sent. A file that is gone by then, or whose holes nobody would
 * wait for, is left out and named: a program inside makes such a file in a live workspace at no cost. Inside, no link on the
 * way is followed: `putTree` goes from folder to folder by what was opened.
 */

import { constants } from 'node:fs';
import { access, type FileHandle, open, realpath, stat } from 'node:fs/promises';
import { basename, join, posix, relative, resolve, sep } from 'node:path';
import { HoleBound, holeBytesOf } from '../lib/hole-bound.ts';
import type { TreeSource } from '../porter/tree-stream.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { SandboxView } from '../protocol/views.ts';
import type { SandboxFiles } from './sandbox-files.ts';

export interface InjectOptions {
  /** What lies below it keeps its relative path. Absent: this program's working directory. */
  readonly cwd?: string;
  readonly signal?: AbortSignal;
  /** Called for each file as it is sent. */
  readonly onFile?: (file: InjectedFile) => void;
}

export interface InjectedFile {
  /** On this machine; absolute. */
  readonly from: string;
  /** Inside; absolute. */
  readonly to: string;
}

export interface Injection {
  /** How many went in. */
  readonly count: number;
  readonly files: readonly InjectedFile[];
  /** As they were named: those that are not there. */
  readonly missing: readonly string[];
  /** On this machine; absolute: those left out because all holes would exceed what is read. */
  readonly tooLarge: readonly string[];
}

/** What of a sandbox says where files belong. */
export type InjectionPlace = Pick<SandboxView, 'workdir' | 'workspace'>;

const chunkBytes = 64 * 1024;
const gone: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR']);

interface Planned {
  readonly from: string;
  /** Relative to the folder inside. */
  readonly path: string;
}

export async function injectFiles(
  files: SandboxFiles,
  place: InjectionPlace,
  names: readonly string[],
  options: InjectOptions = {},
): Promise<Injection> {
  const cancel = options.signal === undefined ? {} : { signal: options.signal };
  const { planned, missing } = await plan(names, resolve(options.cwd ?? '.'));
  if (planned.length === 0) return { count: 0, files: [], missing, tooLarge: [] };
  const root = await folderFor(files, place, cancel);
  const told = ({ from, path }: Planned): InjectedFile => ({ from, to: posix.join(root, path) });
  const there = await alreadyThere(planned, place);
  const vanished = new Set<Planned>();
  const tooLarge = new Set<Planned>();
  const sent = planned.filter((file) => !there.has(file));
  if (sent.length > 0) {
    const entries = treeOf(sent, {
      sending: (file) => options.onFile?.(told(file)),
      vanished: (file) => void vanished.add(file),
      tooLarge: (file) => void tooLarge.add(file),
    });
    await files.putTree(root, entries, cancel);
  }
  const done = planned.filter((file) => !vanished.has(file) && !tooLarge.has(file)).map(told);
  return {
    count: done.length,
    files: done,
    missing: [...missing, ...[...vanished].map(({ from }) => from)],
    tooLarge: [...tooLarge].map(({ from }) => from),
  };
}

async function plan(
  names: readonly string[],
  cwd: string,
): Promise<{ readonly planned: readonly Planned[]; readonly missing: readonly string[] }> {
  const planned = new Map<string, Planned>();
  const missing: string[] = [];
  for (const name of new Set(names)) {
    if (name === '' || name.includes('\0')) throw usage(`${JSON.stringify(name)} is no name of a file`);
    const from = resolve(cwd, name);
    if (!(await isReadableFile(name, from))) {
      missing.push(name);
      continue;
    }
    const path = pathInside(from, cwd);
    const other = planned.get(path);
    if (other !== undefined && other.from !== from) throw collision(other.from, from, path);
    planned.set(path, { from, path });
  }
  for (const { from, path } of planned.values()) {
    const above = parentsOf(path).find((parent) => planned.has(parent));
    if (above !== undefined) throw collision(planned.get(above)?.from ?? above, from, above);
  }
  return { planned: [...planned.values()], missing };
}

/** False: it is not there. Links are followed: what was named is what is meant. */
async function isReadableFile(name: string, path: string): Promise<boolean> {
  try {
    const facts = await stat(path);
    if (facts.isDirectory()) {
      throw usage(`${name} is a folder`, 'Use `sally cp` for folders, or name the files in it.');
    }
    if (!facts.isFile()) throw usage(`${name} is neither a file nor a folder`);
    await access(path, constants.R_OK);
    return true;
  } catch (error) {
    if (isSallyportError(error)) throw error;
    if (gone.has((error as NodeJS.ErrnoException).code)) return false;
    throw usage(`${name} cannot be read: ${(error as Error).message}`, 'Check the path and its permissions.');
  }
}

function pathInside(from: string, cwd: string): string {
  const parts = relative(cwd, from).split(sep);
  return parts[0] === '..' ? basename(from) : parts.join('/');
}

function parentsOf(path: string): readonly string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}

/** The workspace; else where commands start: an image's own `/workspace` need not be the user's. */
async function folderFor(
  files: SandboxFiles,
  { workspace, workdir }: InjectionPlace,
  cancel: { readonly signal?: AbortSignal },
): Promise<string> {
  if (workspace !== undefined) return workspace.target;
  await files.mkdir(workdir, { parents: true, ...cancel });
  return workdir;
}

/**
 * In a workspace that is not copied, a file may be its own target. Replacing it by itself would put the only copy at risk,
 * and it is inside already.
 */
async function alreadyThere(
  planned: readonly Planned[],
  { workspace }: InjectionPlace,
): Promise<ReadonlySet<Planned>> {
  const same = new Set<Planned>();
  if (workspace === undefined || workspace.mode === 'copy' || workspace.mode === 'clone') return same;
  const root = await realpath(workspace.path).catch(() => undefined);
  if (root === undefined) return same;
  for (const file of planned) {
    const [from, to] = await Promise.all(
      [file.from, join(root, file.path)].map((path) => realpath(path).catch(() => undefined)),
    );
    if (from !== undefined && from === to) same.add(file);
  }
  return same;
}

interface Sending {
  readonly sending: (file: Planned) => void;
  readonly vanished: (file: Planned) => void;
  readonly tooLarge: (file: Planned) => void;
}

async function* treeOf(
  planned: readonly Planned[],
  { sending, vanished, tooLarge }: Sending,
): AsyncGenerator<TreeSource> {
  const made = new Set<string>();
  const holes = new HoleBound();
  for (const file of planned) {
    // Opened before it is announced: from then on its content is needed, whatever becomes of its name.
    const handle = await openFile(file.from);
    if (handle === undefined) {
      vanished(file);
      continue;
    }
    try {
      const facts = await handle.stat();
      if (!facts.isFile()) throw changed(file.from);
      if (!holes.take(holeBytesOf(facts))) {
        tooLarge(file);
        continue;
      }
      for (const path of parentsOf(file.path).filter((parent) => !made.has(parent))) {
        made.add(path);
        yield { kind: 'directory', path };
      }
      sending(file);
      const body = { sizeBytes: facts.size, chunks: contentOf(handle, facts.size, file.from) };
      yield { kind: 'file', path: file.path, mode: facts.mode & 0o777, body };
    } finally {
      await handle.close();
    }
  }
}

/** Undefined: it is gone by now. */
async function openFile(path: string): Promise<FileHandle | undefined> {
  try {
    // What was a file a moment ago may be a pipe by now, which nobody may ever write to.
    return await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (cause) {
    if (gone.has((cause as NodeJS.ErrnoException).code)) return undefined;
    throw usage(`${path} cannot be read: ${(cause as Error).message}`, 'Check its permissions.');
  }
}

async function* contentOf(handle: FileHandle, sizeBytes: number, path: string): AsyncGenerator<Buffer> {
  let at = 0;
  while (at < sizeBytes) {
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, sizeBytes - at));
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, at);
    if (bytesRead === 0) throw changed(path);
    at += bytesRead;
    yield chunk.subarray(0, bytesRead);
  }
}

const changed = (path: string): SallyportError =>
  new SallyportError('file_conflict', `${path} changed while it was read`, {
    details: { path },
    advice: 'Inject it again when nothing writes to it.',
  });

function collision(first: string, second: string, path: string): SallyportError {
  return usage(
    `${first} and ${second} would both be ${path} inside`,
    'Inject them one after the other from their own folders, or use `sally cp` with a target for each.',
  );
}

function usage(message: string, advice?: string): SallyportError {
  return new SallyportError('usage', message, advice === undefined ? {} : { advice });
}
