/** What an agent left: how many files are different, and where to look at them. Never in the way of its exit code. */

import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ChangeCalls } from '../../sdk/workspace-changes.ts';
import { note } from '../output.ts';
import type { SandboxCalls } from '../sandbox-calls.ts';

export interface WorkedOn {
  readonly box: string;
  readonly folder: string;
  readonly mode: 'live' | 'readonly' | 'copy';
  readonly sinceMs: number;
}

/** Larger trees are not counted: the answer would come later than anybody waits for it. */
const mostEntries = 200_000;

export async function sayChanges(calls: SandboxCalls, worked: WorkedOn, signal: AbortSignal): Promise<void> {
  const { box, folder, mode, sinceMs } = worked;
  if (mode === 'readonly') return;
  if (mode === 'copy') {
    const count = await copied(calls, box, signal).catch(() => undefined);
    if (count === undefined) return;
    note(count === 0 ? 'no files changed' : `${files(count)} → sally diff ${box} · sally apply ${box}`);
    return;
  }
  const count = await changedSince(folder, sinceMs).catch(() => undefined);
  if (count !== undefined) note(count === 0 ? 'no files changed' : `${files(count)} in ${folder}`);
}

async function copied(calls: SandboxCalls, box: string, signal: AbortSignal): Promise<number> {
  const { id } = await calls.get(box, { signal });
  const { changes } = await new ChangeCalls(calls.client, id).list({ signal });
  return changes.filter(({ before, after }) => (after ?? before)?.kind !== 'directory').length;
}

const files = (count: number): string => `${count} file${count === 1 ? '' : 's'} changed`;

/**
 * Files that were written, made or given other rights since then, by whoever it was; undefined for a tree that is too large. By
 * the time of their inode, which no program can set. SECURITY: git is not asked, as it obeys what is in the folder.
 */
export async function changedSince(folder: string, sinceMs: number): Promise<number | undefined> {
  let [seen, changed] = [0, 0];
  const waiting = [folder];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const entries = await readdir(at, { withFileTypes: true }).catch(() => []);
    seen += entries.length;
    if (seen > mostEntries) return undefined;
    for (const entry of entries) {
      const path = join(at, entry.name);
      if (entry.isDirectory()) {
        if (entry.name !== '.git') waiting.push(path);
      } else {
        const stat = await lstat(path).catch(() => undefined);
        if (stat !== undefined && stat.ctimeMs >= sinceMs) changed++;
      }
    }
  }
  return changed;
}
