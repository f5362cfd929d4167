/**
 * Finds what the configuration of git makes a host execute or obey in a folder: hooks, included configuration, and programs of
 * filters, aliases and the like. Reads, and changes nothing.
 *
 * The configuration is that of the repository that git finds from the folder, of this worktree of it, and of the user. A condition
 * of an include is taken as met: it may be met later.
 */

import { lstat, realpath } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { type NamedByGit, namedByEntries, parseGitConfig } from '../policy/git-config.ts';
import { readSmall } from './small-file.ts';

/** More are not followed: no person's configuration is as deep. */
const mostFiles = 64;
const mostNamed = 256;

interface Repository {
  /** Of its work tree: hooks and programs run there. */
  readonly top: string;
  readonly configFiles: readonly string[];
  /** Absolute, and in the folder: a repository under another name, to which `.git` of the folder points. */
  readonly pointedTo?: string;
}

/** Relative paths. `folder` is a real path. */
export async function namedByGit(folder: string): Promise<readonly NamedByGit[]> {
  const repository = await repositoryOf(folder);
  if (repository === undefined) return [];
  const named = await namedIn([...userFiles(), ...repository.configFiles], repository.top);
  const all = await Promise.all(named.slice(0, mostNamed).map((one) => inFolder(folder, one)));
  const pointedTo = below(folder, repository.pointedTo ?? '');
  const whole = pointedTo === undefined ? [] : [{ path: pointedTo, as: 'repository' } as const];
  const unique = new Map([...all, ...whole].flatMap((one) => (one === undefined ? [] : [[one.path, one]])));
  return [...unique.values()];
}

const userFiles = (): readonly string[] => [
  '/etc/gitconfig',
  join(homedir(), '.config/git/config'),
  join(homedir(), '.gitconfig'),
];

/** The nearest one above the folder counts, too: its hooks may lie in the folder. */
async function repositoryOf(folder: string): Promise<Repository | undefined> {
  for (let top = folder; ; top = dirname(top)) {
    const found = await repositoryAt(top);
    if (found !== undefined || dirname(top) === top) return found;
  }
}

async function repositoryAt(top: string): Promise<Repository | undefined> {
  const git = join(top, '.git');
  const facts = await lstat(git).catch(() => undefined);
  if (facts === undefined) return undefined;
  const pointer = facts.isFile() ? /^gitdir: (.+)$/m.exec((await readSmall(git)) ?? '')?.[1] : undefined;
  const gitDir = pointer === undefined ? git : resolve(top, pointer.trimEnd());
  // An empty folder is no repository: git goes on above it.
  if ((await lstat(join(gitDir, 'HEAD')).catch(() => undefined)) === undefined) return undefined;
  const common = (await readSmall(join(gitDir, 'commondir')))?.trimEnd();
  const commonDir = common === undefined ? gitDir : resolve(gitDir, common);
  const configFiles = [join(commonDir, 'config'), join(gitDir, 'config.worktree'), join(gitDir, 'config')];
  return {
    top,
    configFiles: [...new Set(configFiles)],
    ...(pointer === undefined ? {} : { pointedTo: gitDir }),
  };
}

/** With absolute paths. */
async function namedIn(files: readonly string[], top: string): Promise<readonly NamedByGit[]> {
  const queue = [...files];
  const read = new Set<string>();
  const named: NamedByGit[] = [];
  for (let file = queue.shift(); file !== undefined && read.size < mostFiles; file = queue.shift()) {
    if (read.has(file)) continue;
    read.add(file);
    const text = await readSmall(file, { follow: true });
    if (text === undefined) continue;
    for (const { path, as } of namedByEntries(parseGitConfig(text))) {
      const place = placeOf(path, as === 'configuration' ? dirname(file) : top);
      named.push({ path: place, as });
      if (as === 'configuration') queue.push(place);
    }
  }
  return named;
}

function placeOf(path: string, base: string): string {
  return path.startsWith('~/') ? join(homedir(), path.slice(2)) : resolve(base, path);
}

/** Undefined: it leads out of the folder, is held with `.git` already, or is a program that is not there. */
async function inFolder(folder: string, { path, as }: NamedByGit): Promise<NamedByGit | undefined> {
  if (path === '') return undefined;
  const relative = below(folder, path) ?? below(folder, await realPlace(path));
  if (relative === undefined || ['', '.git', '.git/hooks', '.git/config'].includes(relative))
    return undefined;
  if (as === 'program' && !(await isThere(join(folder, relative)))) return undefined;
  return { path: relative, as };
}

/** A word that names a folder is no program. */
async function isThere(path: string): Promise<boolean> {
  const facts = await lstat(path).catch(() => undefined);
  return facts !== undefined && !facts.isDirectory();
}

function below(folder: string, path: string): string | undefined {
  if (path === folder) return '';
  return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : undefined;
}

/** With the links above it followed. */
async function realPlace(path: string): Promise<string> {
  for (
    let above = dirname(path), rest = basename(path);
    ;
    rest = join(basename(above), rest), above = dirname(above)
  ) {
    const real = await realpath(above).catch(() => undefined);
    if (real !== undefined) return join(real, rest);
    if (dirname(above) === above) return path;
  }
}
