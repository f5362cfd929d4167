/**
 * The audit log (C7): every execution, how it ended and why it was run, and every decision of the guard. One process writes it
 * at a time, the one that holds the lock of the state folder. It only grows; `audit-chain.ts` says how damage is seen.
 */

import type { AuditEntry } from '../protocol/audit.ts';
import {
  auditFolder,
  auditPath,
  firstNumber,
  genesis,
  type Head,
  HeadFile,
  hashLine,
  headPath,
  lastLine,
  readHead,
  readLink,
  wholeLines,
} from './audit-chain.ts';
import { agedPath, RotatingFile, type Rotation } from './rotating-file.ts';
import { provideFolder } from './state-folder.ts';

const headDelayMs = 20;

export const auditRotation: Rotation = { maxBytes: 16 * 2 ** 20, keep: 8 };

export class AuditFile {
  readonly #path: string;
  readonly #limits: Rotation;
  readonly #file: RotatingFile;
  readonly #headFile: HeadFile;
  #head: Head = { n: 0, hash: genesis, first: 1 };
  #timer: NodeJS.Timeout | undefined;

  constructor(stateDir: string, limits: Rotation = auditRotation) {
    this.#path = auditPath(stateDir);
    this.#limits = limits;
    provideFolder(auditFolder(stateDir));
    // Opens the newest file first, which cuts off what a crash left of a line.
    this.#file = new RotatingFile(this.#path, limits, () => this.#forgetOldest());
    const kept = readHead(headPath(stateDir));
    this.#headFile = new HeadFile(headPath(stateDir));
    this.#resume(kept);
  }

  append(entry: AuditEntry): void {
    const n = this.#head.n + 1;
    const line = JSON.stringify({ n, prev: this.#head.hash, at: new Date().toISOString(), ...entry });
    this.#file.append(line);
    this.#head = { ...this.#head, n, hash: hashLine(line) };
    // Not at once: the end of a command waits for its line, and many lines make one head.
    this.#timer ??= setTimeout(() => this.#writeHead(), headDelayMs).unref();
  }

  close(): void {
    this.#writeHead();
    this.#file.close();
    this.#headFile.close();
  }

  #writeHead(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    try {
      this.#headFile.write(this.#head);
    } catch {
      // It stays behind as after a crash, the line itself is there, and the next one tries again.
    }
  }

  /** Goes on where the last writer ended. What does not fit is put on record and stays visible; nothing is made to fit. */
  #resume(kept: Head | undefined): void {
    const text = this.#last();
    const link = text === undefined ? undefined : readLink(text);
    const hash = text === undefined ? genesis : hashLine(text);
    if (text === undefined && kept === undefined) {
      // Before the first line: a head that follows late must not look like one that was removed.
      this.#writeHead();
      return;
    }
    const isWhole =
      kept !== undefined && (kept.n === 0 ? text === undefined : link?.n === kept.n && hash === kept.hash);
    if (isWhole) this.#head = kept;
    else if (kept !== undefined && link !== undefined && link.n > kept.n && this.#leadsOn(kept)) {
      // The writer died before the head came after.
      this.#head = { ...kept, n: link.n, hash };
      this.#writeHead();
    } else {
      const n = Math.max(kept?.n ?? 0, link?.n ?? 0);
      this.#head = { n, hash: kept?.hash ?? hash, first: kept?.first ?? this.#oldest()[0]?.first ?? 1 };
      const reason =
        kept === undefined
          ? 'the head of the log is missing'
          : `the log ended with line ${link?.n ?? 'none'}, its head says ${kept.n}`;
      this.append({ type: 'audit', reason, outcome: 'damaged' });
      this.#writeHead();
    }
  }

  /** Whether the lines after the head follow from it, each from the one before. */
  #leadsOn(kept: Head): boolean {
    let last: { readonly n: number; readonly hash: string } | undefined =
      kept.n === 0 ? { n: 0, hash: genesis } : undefined;
    for (const age of [1, 0]) {
      for (const text of wholeLines(agedPath(this.#path, age))) {
        const link = readLink(text);
        const hash = hashLine(text);
        if (last !== undefined) {
          if (link?.n !== last.n + 1 || link.prev !== last.hash) return false;
          last = { n: link.n, hash };
        } else if (link?.n === kept.n) {
          if (hash !== kept.hash) return false;
          last = { n: link.n, hash };
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

  /** Before and not after: a crash in between then leaves more than is promised, never less. */
  #forgetOldest(): void {
    const [oldest, next] = this.#oldest();
    if (oldest?.age !== this.#limits.keep - 1 || next === undefined) return;
    this.#head = { ...this.#head, first: next.first };
    this.#writeHead();
  }
}
