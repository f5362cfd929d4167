/** `box:path` on the command line: which sandbox, and where in it. */

import { posix } from 'node:path';
import { SallyportError } from '../protocol/errors.ts';
import { SandboxFiles } from '../sdk/sandbox-files.ts';
import { folderSandboxName } from './folder-sandbox.ts';
import type { SandboxCalls } from './sandbox-calls.ts';

export interface BoxPlace {
  /** Empty: this folder's. */
  readonly box: string;
  readonly path: string;
}

/** Undefined for a path of this machine: whatever has a slash or a dot at its start before any colon. */
export function parsePlace(text: string): BoxPlace | undefined {
  const at = text.indexOf(':');
  if (at < 0 || /^[./~]/.test(text) || text.slice(0, at).includes('/')) return undefined;
  return { box: text.slice(0, at), path: text.slice(at + 1) };
}

/** The same where nothing else can be meant: a bare name is the folder in which its commands start. */
export function requirePlace(text: string): BoxPlace {
  const place = parsePlace(text) ?? (/^[\w][\w.-]*$/.test(text) ? { box: text, path: '' } : undefined);
  if (place !== undefined) return place;
  throw new SallyportError('usage', `${text} is no place in a sandbox`, {
    advice: "Write box:path, or :path for this folder's sandbox.",
  });
}

export interface OpenedPlace {
  readonly files: SandboxFiles;
  readonly box: string;
  /** Where its commands start. */
  readonly workdir: string;
  /** Absolute, and as it was written otherwise: a slash or a dot at its end means something. */
  readonly path: string;
}

export async function openPlace(
  calls: SandboxCalls,
  { box, path }: BoxPlace,
  signal: AbortSignal,
): Promise<OpenedPlace> {
  const view = await calls.get(box === '' ? folderSandboxName(process.cwd()) : box, { signal });
  const { id, name, workdir } = view;
  return { files: new SandboxFiles(calls.client, id), box: name, workdir, path: inside(path, workdir) };
}

export function inside(path: string, workdir: string): string {
  if (path.startsWith('/')) return path;
  if (path === '') return workdir;
  return `${workdir === '/' ? '' : workdir}/${path}`;
}

export const parentAndName = (path: string): readonly [string, string] => {
  const plain = path.replace(/\/+$/, '');
  return [posix.dirname(plain), posix.basename(plain)];
};
