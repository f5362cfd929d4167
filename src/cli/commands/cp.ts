/**
 * `sally cp`: files and folders into a sandbox or out of it, with Docker's rules for what the target means.
 *
 * SECURITY: a tree that comes out is hostile. `sdk/write-tree.ts` and `sdk/write-file.ts` write it; nothing here opens a
 * path below the target.
 */

import { lstat, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { isSallyportError, SallyportError } from '../../protocol/errors.ts';
import { type BoxPlace, type OpenedPlace, openPlace, parentAndName, parsePlace } from '../box-place.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { absolutePath } from '../options/spec-from-options.ts';
import { note, printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { printable } from '../table.ts';

interface Copied {
  readonly from: string;
  readonly to: string;
  readonly skipped: readonly { readonly path: string; readonly why: string }[];
}

export async function cpCommand(
  source: string,
  target: string,
  options: { readonly json?: true },
  { signal }: CliContext,
): Promise<number> {
  const [from, to] = [parsePlace(source), parsePlace(target)];
  if ((from === undefined) === (to === undefined)) throw bothOrNone(from !== undefined);
  const calls = new SandboxCalls();
  try {
    const copied =
      from === undefined
        ? await copyIn(source, await openPlace(calls, to as BoxPlace, signal), signal)
        : await copyOut(await openPlace(calls, from, signal), target, signal);
    if (options.json === true) printJson(copied);
    else for (const { path, why } of copied.skipped) note(`left out ${printable(path)}: ${printable(why)}`);
    return exitCode.ok;
  } finally {
    calls.close();
  }
}

function bothOrNone(both: boolean): SallyportError {
  const what = both ? 'both places are in sandboxes' : 'neither place is in a sandbox';
  return new SallyportError('usage', what, {
    advice: 'One of them is box:path, the other a path of this machine; ./name where a name has a colon.',
  });
}

/** Whether what is in a folder is meant, and not the folder itself. */
const meansContents = (path: string): boolean => /(^|\/)\.$/.test(path);

async function copyIn(
  source: string,
  { files, box, path }: OpenedPlace,
  signal: AbortSignal,
): Promise<Copied> {
  const from = absolutePath(source, process.cwd());
  const facts = await stat(from).catch((cause: unknown) => {
    throw new SallyportError('usage', `${source} is not there, or may not be read`, {
      advice: 'Check the path; it is one of this machine.',
      cause,
    });
  });
  const there = await files.stat(path, { signal }).catch((error: unknown) => {
    if (isSallyportError(error, 'file_not_found')) return undefined;
    throw error;
  });
  if (there !== undefined && there.kind !== 'directory' && facts.isDirectory())
    throw notAFolder(`${box}:${path}`);
  if (there === undefined && path.endsWith('/') && !facts.isDirectory()) throw noSuchFolder(`${box}:${path}`);
  const isInto = there?.kind === 'directory' && !(facts.isDirectory() && meansContents(source));
  const to = isInto ? `${path.replace(/\/+$/, '')}/${basename(from)}` : path;
  await files.upload(from, to, { signal });
  return { from, to: `${box}:${to}`, skipped: [] };
}

async function copyOut(
  { files, box, path }: OpenedPlace,
  target: string,
  signal: AbortSignal,
): Promise<Copied> {
  const { kind } = await files.stat(path, { signal });
  const wanted = absolutePath(target, process.cwd());
  const there = await lstat(wanted).catch(() => undefined);
  const isFolder = there === undefined ? false : (await stat(wanted).catch(() => there)).isDirectory();
  if (there === undefined && /\/$/.test(target) && kind !== 'directory') throw noSuchFolder(target);
  if (there !== undefined && !isFolder && kind === 'directory') throw notAFolder(target);
  const [, name] = parentAndName(path);
  const isInto = isFolder && !(kind === 'directory' && meansContents(path));
  const to = isInto ? join(wanted, safeName(name)) : resolve(wanted);
  const { skipped } = await files.download(path, to, { signal });
  return { from: `${box}:${path}`, to, skipped };
}

/** SECURITY: the last part of a path that was written here, and still never one that leads elsewhere. */
function safeName(name: string): string {
  if (name !== '' && name !== '.' && name !== '..' && !name.includes('/')) return name;
  throw new SallyportError('usage', `${JSON.stringify(name)} is no name for a copy`, {
    advice: 'Name the target as a whole.',
  });
}

const notAFolder = (place: string): SallyportError =>
  new SallyportError('file_conflict', `${place} is there and is no folder`, {
    advice: 'Name a folder, or a path that is not there yet.',
  });

const noSuchFolder = (place: string): SallyportError =>
  new SallyportError('file_not_found', `there is no folder ${place}`, {
    advice: 'Make it first, or leave the slash at the end out to name the copy.',
  });
