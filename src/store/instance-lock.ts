/**
 * One daemon for each state folder: `daemon.lock` says which process holds it. A lock is held as long as that process
 * lives, so one whose holder was killed is taken over; nobody has to clean up.
 *
 * Taking over must not race. A lock is replaced only by whoever holds the lock on replacing exactly this one, and only if it
 * is still there then. Each has a random mark, so a replaced one never comes back. The second lock is taken the same way.
 */

import { randomBytes } from 'node:crypto';
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { processStart } from '../lib/process-start.ts';
import { errno, stateFailure } from './state-failure.ts';
import { fileMode, provideStateFolder } from './state-folder.ts';

interface Holder {
  readonly pid: number;
  readonly start: string;
  readonly mark: string;
}

export interface HeldLock {
  /** Idempotent. */
  release(): void;
}

export async function takeLock(stateDir: string): Promise<HeldLock | { readonly heldBy: number }> {
  provideStateFolder(stateDir);
  const path = join(stateDir, 'daemon.lock');
  try {
    const lock = take(path);
    if ('release' in lock) sweep(path);
    return lock;
  } catch (cause) {
    throw stateFailure('taking the lock of the state folder', path, cause);
  }
}

function take(path: string): HeldLock | { readonly heldBy: number } {
  const self = {
    pid: process.pid,
    start: processStart(process.pid) ?? '',
    mark: randomBytes(8).toString('hex'),
  };
  const draft = `${path}.${self.mark}.draft`;
  writeFileSync(draft, `${JSON.stringify(self)}\n`, { mode: fileMode, flag: 'wx' });
  try {
    for (;;) {
      if (linked(draft, path)) return held(path, self);
      const holder = readHolder(path);
      if (holder === 'none') continue;
      if (holder !== 'unreadable' && isAlive(holder)) return { heldBy: holder.pid };
      const mark = holder === 'unreadable' ? 'unreadable' : holder.mark;
      const turn = take(`${path}.${mark}`);
      if ('heldBy' in turn) return turn;
      try {
        const now = readHolder(path);
        const same = now === holder || (typeof now === 'object' && now.mark === mark);
        if (!same) continue;
        renameSync(draft, path);
        return held(path, self);
      } finally {
        turn.release();
      }
    }
  } finally {
    rmSync(draft, { force: true });
  }
}

const held = (path: string, self: Holder): HeldLock => ({
  release: () => {
    const holder = readHolder(path);
    if (typeof holder === 'object' && holder.mark === self.mark) rmSync(path, { force: true });
  },
});

const isAlive = (holder: Holder): boolean => processStart(holder.pid) === holder.start;

/** Either the whole lock is there or nothing: a link is made of a file that is complete. */
function linked(draft: string, path: string): boolean {
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (errno(error) === 'EEXIST') return false;
    throw error;
  }
}

/** `unreadable`: nobody wrote that; it holds nothing. */
function readHolder(path: string): Holder | 'none' | 'unreadable' {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (errno(error) === 'ENOENT') return 'none';
    throw error;
  }
  try {
    const { pid, start, mark } = JSON.parse(text) as Partial<Holder>;
    const whole = Number.isSafeInteger(pid) && typeof start === 'string' && /^[0-9a-f]{16}$/.test(mark ?? '');
    return whole ? ({ pid, start, mark } as Holder) : 'unreadable';
  } catch {
    return 'unreadable';
  }
}

/** What takers left that were killed while they were at it. */
function sweep(path: string): void {
  for (const name of readdirSync(dirname(path))) {
    if (!name.startsWith(`${basename(path)}.`)) continue;
    const left = join(dirname(path), name);
    const owner = readHolder(left);
    if (typeof owner === 'object' && !isAlive(owner)) rmSync(left, { force: true });
  }
}
