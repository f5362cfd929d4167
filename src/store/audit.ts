/**
 * The audit log (C7): every execution, how it ended and why it was run, and every decision of the guard. Several processes may
 * write it: each line is appended under `audit.lock`, after the lines that other processes wrote since, so all of them make one
 * chain. It only grows; `audit-chain.ts` says how damage is seen.
 */

import { FileLockError, withFileLockSync } from '../lib/file-lock.ts';
import type { AuditEntry } from '../protocol/audit.ts';
import {
  auditFolder,
  auditLockPath,
  auditPath,
  firstNumber,
  genesis,
  type Head,
  hashLine,
  headPath,
  lastLine,
  readHead,
  readLink,
  wholeLines,
  writeHead,
} from './audit-chain.ts';
import { agedPath, type Rotation } from './rotating-file.ts';
import { SharedLines } from './shared-lines.ts';
import { provideFolder, provideStateFolder } from './state-folder.ts';
import { withStateLockSync } from './state-lock.ts';

const headDelayMs = 20;
/** A process that is further behind goes by the head, as at an opening: others wait for the lock meanwhile. */
const mostBytesBehind = 2 ** 20;

export const auditRotation: Rotation = { maxBytes: 16 * 2 ** 20, keep: 8 };

export class AuditFile {
  readonly #stateDir: string;
  readonly #path: string;
  readonly #lock: string;
  readonly #headPath: string;
  readonly #limits: Rotation;
  readonly #lockMs: number;
  readonly #file: SharedLines;
  /** The last line that this process wrote or read. */
  #head: Head = { n: 0, hash: genesis, first: 1 };
  #isHeadBehind = false;
  #timer: NodeJS.Timeout | undefined;

  /** `lockMs` is how long a line waits for other processes. */
  constructor(stateDir: string, limits: Rotation = auditRotation, lockMs = 1000) {
    this.#lockMs = lockMs;
    this.#stateDir = stateDir;
    this.#path = auditPath(stateDir);
    this.#lock = auditLockPath(stateDir);
    this.#headPath = headPath(stateDir);
    this.#limits = limits;
    this.#file = new SharedLines(this.#path, limits, () => this.#beforeRotation());
    provideStateFolder(stateDir);
    this.#locked(() => this.#resume(undefined));
  }

  append(entry: AuditEntry): void {
    this.#locked(() => {
      this.#catchUp();
      this.#write(entry);
    });
    this.#writeHeadLater();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#isHeadBehind) {
      try {
        this.#locked(() => this.#writeHead());
      } catch {
        // It stays behind as after a crash; the lines themselves are there.
      }
    }
    this.#file.close();
  }

  #locked(action: () => void): void {
    withStateLockSync(this.#lock, action, this.#lockMs);
  }

  #write(entry: AuditEntry): void {
    const n = this.#head.n + 1;
    const line = JSON.stringify({ n, prev: this.#head.hash, at: new Date().toISOString(), ...entry });
    this.#file.append(line);
    this.#head = { ...this.#head, n, hash: hashLine(line) };
    this.#isHeadBehind = true;
  }

  /** Not at once: the end of a command waits for its line, and many lines make one head. */
  #writeHeadLater(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      try {
        withFileLockSync(this.#lock, () => this.#writeHead(), 0);
      } catch (error) {
        // Another process writes at this moment. After any other failure the next line tries again.
        if (error instanceof FileLockError && error.pid !== undefined) this.#writeHeadLater();
      }
    }, headDelayMs).unref();
  }

  #writeHead(): void {
    this.#catchUp();
    const kept = readHead(this.#headPath);
    const { n } = this.#head;
    if (kept !== undefined && kept.n > n) this.#recordDamage(kept, mismatch(n, kept));
    this.#storeHead();
  }

  /** Never goes back: a head that is ahead of the lines is the only sign that some are missing. */
  #storeHead(): void {
    writeHead(this.#headPath, later(readHead(this.#headPath), this.#head));
    this.#isHeadBehind = false;
  }

  /** Takes up what other processes wrote since the last call. What does not follow is judged as at an opening. */
  #catchUp(): void {
    if (this.#file.isCurrent) return;
    const lines = this.#file.readOn(mostBytesBehind);
    if (lines === undefined || !this.#follow(lines)) this.#resume(this.#head);
  }

  #follow(lines: readonly string[]): boolean {
    let { n, hash } = this.#head;
    for (const text of lines) {
      const link = readLink(text);
      if (link?.n !== n + 1 || link.prev !== hash) return false;
      n = link.n;
      hash = hashLine(text);
    }
    this.#head = { ...this.#head, n, hash };
    return true;
  }

  /**
   * Goes on where the last writer ended. What does not fit the head is put on record and stays visible; nothing is made to fit.
   * `known` is the last line that this process knows of.
   */
  #resume(known: Head | undefined): void {
    provideFolder(auditFolder(this.#stateDir));
    this.#file.reopen();
    const kept = readHead(this.#headPath);
    const expected = known === undefined ? kept : later(kept, known);
    const text = this.#last();
    const link = text === undefined ? undefined : readLink(text);
    const hash = text === undefined ? genesis : hashLine(text);
    if (text === undefined && expected === undefined) {
      // Before the first line: a head that follows late must not look like one that was removed.
      this.#storeHead();
    } else if (expected === undefined) {
      const first = this.#oldest()[0]?.first ?? 1;
      this.#recordDamage({ n: link?.n ?? 0, hash, first }, 'the head of the log is missing');
    } else if (expected.n === 0 ? text === undefined : link?.n === expected.n && hash === expected.hash) {
      this.#head = expected;
    } else if (link !== undefined && link.n > expected.n && this.#leadsOn(expected)) {
      // The head did not follow yet, or its writer died before.
      this.#head = { ...expected, n: link.n, hash };
      this.#storeHead();
    } else {
      const n = Math.max(expected.n, link?.n ?? 0);
      this.#recordDamage({ ...expected, n }, mismatch(link?.n, expected));
    }
  }

  /** The line of the damage comes after `last`, the latest that anybody knows of. */
  #recordDamage(last: Head, reason: string): void {
    this.#head = last;
    this.#write({ type: 'audit', reason, outcome: 'damaged' });
    this.#storeHead();
  }

  /** Whether the lines after the head follow from it, each from the one before. */
  #leadsOn(kept: Head): boolean {
    let last: { readonly n: number; readonly hash: string } | undefined =
      kept.n === 0 ? { n: 0, hash: genesis } : undefined;
    for (const age of [1, 0]) {
      for (const text of wholeLines(agedPath(this.#path, age))) {
        const link = readLink(text);
        if (last !== undefined) {
          if (link?.n !== last.n + 1 || link.prev !== last.hash) return false;
          last = { n: link.n, hash: hashLine(text) };
        } else if (link?.n === kept.n) {
          if (hashLine(text) !== kept.hash) return false;
          last = { n: link.n, hash: kept.hash };
        }
      }
    }
    return last !== undefined;
  }

  /** A rotation that was cut off leaves no newest file, or an empty one. */
  #last(): string | undefined {
    return lastLine(this.#path) ?? lastLine(agedPath(this.#path, 1));
  }

  #oldest(): readonly { readonly age: number; readonly first: number }[] {
    const ages = Array.from({ length: this.#limits.keep }, (_, age) => this.#limits.keep - 1 - age);
    return ages.flatMap((age) => {
      const first = firstNumber(agedPath(this.#path, age));
      return first === undefined ? [] : [{ age, first }];
    });
  }

  /**
   * Before and not after: a crash in between then leaves more than is promised, never less. The head follows in any case, so its
   * line is in one of the two newest files.
   */
  #beforeRotation(): void {
    const [oldest, next] = this.#oldest();
    if (oldest?.age === this.#limits.keep - 1 && next !== undefined) {
      this.#head = { ...this.#head, first: next.first };
    }
    this.#storeHead();
  }
}

function later(kept: Head | undefined, own: Head): Head {
  if (kept === undefined) return own;
  return { ...(kept.n > own.n ? kept : own), first: Math.max(kept.first, own.first) };
}

const mismatch = (last: number | undefined, head: Head): string =>
  `the log ended with line ${last ?? 'none'}, its head says ${head.n}`;
