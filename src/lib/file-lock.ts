/**
 * A lock across processes for short critical sections: a symbolic link whose target text names the holder. The link points
 * nowhere and is never followed; making it is atomic, so a lock is there as a whole or not at all.
 *
 * The lock of a process that died is taken over. Of many takers one wins: a lock is replaced only by the process that holds the
 * lock on replacing exactly this one, and only if it is still there then. Each lock has a random mark, so a replaced one
 * never comes back. The second lock is taken the same way.
 *
 * A lock is not re-entrant: an action that takes the lock it runs under waits for itself and fails at the limit.
 */

import { hash } from 'node:crypto';
import { readdirSync, readlinkSync, renameSync, rmSync, symlinkSync, unlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { processStart } from './process-start.ts';
import { randomPortion } from './random-pool.ts';

const syncLimitMs = 1000;
const syncStepMs = 1;
const limitMs = 10_000;
const stepMs = 5;
/** A holder that was found alive is looked up again after this long: it costs a read of /proc, or a run of `ps`. */
const lookAgainMs = 50;

interface Holder {
  readonly pid: number;
  readonly mark: string;
  /** Stands for the time at which the process began. */
  readonly start: string;
}

export class FileLockError extends Error {
  override readonly name = 'FileLockError';
  readonly path: string;
  /** The process that holds the lock; undefined if the file system failed. */
  readonly pid: number | undefined;

  constructor(path: string, message: string, options: { readonly pid?: number; readonly cause?: unknown }) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.path = path;
    this.pid = options.pid;
  }
}

/** Runs `action` under the lock. It blocks this process for up to `limit` milliseconds while another one holds the lock. */
export function withFileLockSync<T>(path: string, action: () => T, limit = syncLimitMs): T {
  const taker = new Taker(path, limit);
  while (!taker.take()) Atomics.wait(idle, 0, 0, varied(syncStepMs));
  try {
    return action();
  } finally {
    taker.release();
  }
}

/** The same for an action that takes longer; the event loop goes on while it waits. */
export async function withFileLock<T>(path: string, action: () => Promise<T>, limit = limitMs): Promise<T> {
  const taker = new Taker(path, limit);
  while (!taker.take()) await sleep(varied(stepMs));
  try {
    return await action();
  } finally {
    taker.release();
  }
}

/** Nobody ever wakes it. */
const idle = new Int32Array(new SharedArrayBuffer(4));

/** So that waiting processes do not try at the same moment again and again. */
const varied = (ms: number): number => ms * (0.5 + Math.random());

class Taker {
  readonly #path: string;
  readonly #limitMs: number;
  readonly #endMs: number;
  readonly #self: Holder;
  #alive: { readonly mark: string; readonly untilMs: number } | undefined;

  constructor(path: string, limit: number) {
    this.#path = path;
    this.#limitMs = limit;
    this.#endMs = performance.now() + limit;
    this.#self = ownHolder(path);
  }

  /** False: another process holds the lock, and there is time left. */
  take(): boolean {
    const holder = this.#attempt((path) => take(path, this.#self, (other) => this.#isAlive(other)));
    if (holder === undefined) return true;
    if (performance.now() < this.#endMs) return false;
    const message = `the lock ${this.#path} was not free within ${this.#limitMs} ms: process ${holder.pid} holds it`;
    throw new FileLockError(this.#path, message, { pid: holder.pid });
  }

  release(): void {
    this.#attempt((path) => release(path, this.#self));
  }

  #isAlive(holder: Holder): boolean {
    const nowMs = performance.now();
    if (this.#alive?.mark === holder.mark && nowMs < this.#alive.untilMs) return true;
    if (!isAlive(holder)) return false;
    this.#alive = { mark: holder.mark, untilMs: nowMs + lookAgainMs };
    return true;
  }

  #attempt<T>(operation: (path: string) => T): T {
    try {
      return operation(this.#path);
    } catch (cause) {
      throw failure(this.#path, cause);
    }
  }
}

function failure(path: string, cause: unknown): FileLockError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new FileLockError(path, `the lock ${path} cannot be used: ${reason}`, { cause });
}

/** Undefined when `self` has the lock; else who holds it, or holds the lock on replacing it. */
function take(path: string, self: Holder, isHeld: (holder: Holder) => boolean): Holder | undefined {
  for (;;) {
    if (linked(path, self)) return undefined;
    const holder = readHolder(path);
    if (holder === 'none') continue;
    if (holder !== 'unreadable' && isHeld(holder)) return holder;
    const other = replace(path, holder, self);
    if (other === 'taken') {
      sweep(path);
      return undefined;
    }
    if (other !== 'changed') return other;
  }
}

function replace(path: string, dead: Holder | 'unreadable', self: Holder): Holder | 'taken' | 'changed' {
  const mark = dead === 'unreadable' ? dead : dead.mark;
  const turnPath = `${path}.${mark}`;
  const turn = { ...self, mark: newMark() };
  const other = take(turnPath, turn, isAlive);
  if (other !== undefined) return other;
  try {
    const now = readHolder(path);
    const isSame = now === dead || (typeof now === 'object' && now.mark === mark);
    if (!isSame) return 'changed';
    const draft = `${path}.${self.mark}.draft`;
    try {
      symlinkSync(targetOf(self), draft);
      renameSync(draft, path);
    } catch (error) {
      rmSync(draft, { force: true });
      throw error;
    }
    return 'taken';
  } finally {
    release(turnPath, turn);
  }
}

function release(path: string, self: Holder): void {
  const holder = readHolder(path);
  if (typeof holder === 'object' && holder.mark === self.mark) unlinkSync(path);
}

const isAlive = (holder: Holder): boolean => startOf(holder.pid) === holder.start;

/** Short: ext4 keeps a target of less than 60 bytes in the inode, and a longer one in a block, which is slow to free. */
function startOf(pid: number): string | undefined {
  const start = processStart(pid);
  return start === undefined ? undefined : hash('sha256', start).slice(0, 16);
}

const newMark = (): string => randomPortion(8).toString('hex');

let ownStart: string | undefined;

function ownHolder(path: string): Holder {
  try {
    ownStart ??= startOf(process.pid);
  } catch (cause) {
    throw failure(path, cause);
  }
  // Without it the lock would look like one of a process that died.
  if (ownStart === undefined) throw failure(path, 'the start time of this process cannot be read');
  return { pid: process.pid, mark: newMark(), start: ownStart };
}

const targetOf = ({ pid, mark, start }: Holder): string => `${pid} ${mark} ${start}`;

function linked(path: string, self: Holder): boolean {
  try {
    symlinkSync(targetOf(self), path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** `unreadable`: not a link, or not one of a lock; it holds nothing. */
function readHolder(path: string): Holder | 'none' | 'unreadable' {
  let target: string;
  try {
    target = readlinkSync(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 'none';
    if (codeOf(error) === 'EINVAL') return 'unreadable';
    throw error;
  }
  const match = /^(\d{1,10}) ([0-9a-f]{16}) ([0-9a-f]{16})$/.exec(target);
  return match === null
    ? 'unreadable'
    : { pid: Number(match[1]), mark: match[2] ?? '', start: match[3] ?? '' };
}

/**
 * Removes what killed takers left. Only the holder of the lock does this: then every lock on replacing an earlier one is
 * worth nothing, also one that is removed here while it is taken over.
 */
function sweep(path: string): void {
  const folder = dirname(path);
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(`${basename(path)}.`)) continue;
    const left = join(folder, name);
    const owner = readHolder(left);
    if (typeof owner === 'object' && !isAlive(owner)) rmSync(left, { force: true });
  }
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;
