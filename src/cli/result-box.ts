/** The sandbox whose results a verb is about: by its name, or that of this folder. */

import { ChangeCalls, type WorkspaceChange, type WorkspaceChanges } from '../sdk/workspace-changes.ts';
import { folderSandboxName } from './folder-sandbox.ts';
import type { SandboxCalls } from './sandbox-calls.ts';

export interface ResultBox {
  readonly name: string;
  readonly calls: ChangeCalls;
}

export async function openResults(
  calls: SandboxCalls,
  box: string | undefined,
  signal: AbortSignal,
): Promise<ResultBox> {
  const wanted = box === undefined || box === ':' ? folderSandboxName(process.cwd()) : box;
  const { id, name } = await calls.get(wanted, { signal });
  return { name, calls: new ChangeCalls(calls.client, id) };
}

/** Those at or below one of the paths; all of them if there is none. Paths begin in the workspace. */
export function onlyBelow(
  { source, target, changes }: WorkspaceChanges,
  paths: readonly string[],
): WorkspaceChanges {
  const wanted = paths.map((path) => {
    const inside =
      path === target ? '' : path.startsWith(`${target}/`) ? path.slice(target.length + 1) : path;
    const plain = inside.replace(/^\.\//, '').replace(/\/+$/, '');
    return Buffer.from(plain === '.' ? '' : plain).toString('latin1');
  });
  const isWanted = ({ pathBytes }: WorkspaceChange): boolean => {
    const path = pathBytes.toString('latin1');
    return wanted.some((one) => one === '' || path === one || path.startsWith(`${one}/`));
  };
  return { source, target, changes: wanted.length === 0 ? changes : changes.filter(isWanted) };
}
