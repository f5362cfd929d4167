/**
 * `sallyport.yaml` of a project. It is found in the working folder, or in a parent up to the root of the repository that
 * contains it. Outside of a repository only the folder itself is looked at: a file in /tmp is not the project of
 * everything below /tmp. A home is never searched from below.
 */

import { lstat, readdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { SallyportError } from '../protocol/errors.ts';
import { type SpecInput, specSchema } from '../protocol/spec.ts';
import { type SpecFragment, withAbsolutePaths } from './spec-source.ts';
import { parseConfigText, readConfigFile } from './yaml-file.ts';

export const projectFileName = 'sallyport.yaml';

export interface ProjectFile {
  readonly file: string;
  /** Its folder, links followed. */
  readonly folder: string;
  /** Paths absolute. */
  readonly spec: SpecFragment;
}

export async function findProjectFile(cwd: string, home: string): Promise<ProjectFile | undefined> {
  const start = await realpath(cwd);
  for (const folder of await foldersToSearch(start, await realpath(home).catch(() => home))) {
    const found = await readProjectFile(folder, home);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Undefined: this folder has none. */
export async function readProjectFile(folder: string, home: string): Promise<ProjectFile | undefined> {
  const file = join(folder, projectFileName);
  // A sandbox that has this folder holds the place of a missing file with an empty folder.
  const text = (await isEmptyFolder(file)) ? undefined : await readConfigFile(file);
  if (text === undefined) {
    await refuseOtherName(folder);
    return undefined;
  }
  const spec = parseConfigText(file, text, specSchema) as SpecInput;
  return { file, folder, spec: withAbsolutePaths(spec, folder, home) };
}

/** A file that looks like ours and has no effect would be trusted for nothing. */
async function refuseOtherName(folder: string): Promise<void> {
  const other = join(folder, 'sallyport.yml');
  if (!(await exists(other))) return;
  throw new SallyportError(
    'config_invalid',
    `${other}: it is not read, because its name must be ${projectFileName}`,
    {
      details: { file: other },
      advice: `Rename it: mv ${other} ${join(folder, projectFileName)}`,
    },
  );
}

async function foldersToSearch(start: string, home: string): Promise<readonly string[]> {
  const folders: string[] = [];
  for (let folder = start; ; folder = dirname(folder)) {
    if (folder !== start && (folder === home || folder === '/')) return [start];
    folders.push(folder);
    if (await isRepository(folder)) return folders;
    if (dirname(folder) === folder) return [start];
  }
}

/** An empty `.git` is none, as git has it. */
async function isRepository(folder: string): Promise<boolean> {
  const git = join(folder, '.git');
  return (await exists(git)) && !(await isEmptyFolder(git));
}

async function isEmptyFolder(path: string): Promise<boolean> {
  return await readdir(path).then(
    (names) => names.length === 0,
    () => false,
  );
}

async function exists(path: string): Promise<boolean> {
  return await lstat(path).then(
    () => true,
    () => false,
  );
}
