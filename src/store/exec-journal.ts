/**
 * What is remembered of a sandbox's execs: `execs.jsonl`, a whole record a line, of which the last one of an exec counts.
 * When it grows too long it is written anew, without the oldest of those that ended; running ones always stay.
 */

import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { type ExecId, isExecId } from '../protocol/ids.ts';
import { execStates } from '../protocol/states.ts';
import type { ExecRecord } from '../sandboxes/records.ts';
import { AppendFile } from './append-file.ts';
import { errno, stateFailure } from './state-failure.ts';
import { replaceFile } from './state-folder.ts';

export interface JournalLimits {
  readonly bytes: number;
  /** Execs that ended. */
  readonly ended: number;
}

export const journalLimits: JournalLimits = { bytes: 4 * 2 ** 20, ended: 1000 };

/** Writing it anew leaves room for a while, or every further exec would do it again. */
const keptShare = 0.75;
const heldMs = 1000;

const recordSchema = z.looseObject({
  id: z.string().refine(isExecId),
  sandboxId: z.string(),
  stream: z.number().int(),
  argv: z.array(z.string()),
  cwd: z.string(),
  tty: z.boolean(),
  background: z.boolean(),
  reason: z.string(),
  startedAt: z.iso.datetime(),
  state: z.enum(execStates),
  stdoutBytes: z.number(),
  stderrBytes: z.number(),
});

export class ExecJournal {
  readonly #path: string;
  readonly #limits: JournalLimits;
  readonly #onDropped: (exec: ExecRecord) => void;
  /** In the order in which they began. */
  readonly #records = new Map<ExecId, ExecRecord>();
  #compactAt: number;
  #ended = 0;
  #file: AppendFile | undefined;
  #closing: NodeJS.Timeout | undefined;

  constructor(path: string, onDropped: (exec: ExecRecord) => void, limits: JournalLimits = journalLimits) {
    this.#path = path;
    this.#limits = limits;
    this.#onDropped = onDropped;
    this.#compactAt = limits.bytes;
    for (const line of readLines(path)) {
      const record = parseRecord(line);
      if (record) this.#keep(record);
    }
  }

  get records(): readonly ExecRecord[] {
    return [...this.#records.values()];
  }

  find(id: ExecId): ExecRecord | undefined {
    return this.#records.get(id);
  }

  save(record: ExecRecord): void {
    const file = this.#open();
    file.append(JSON.stringify(record));
    this.#keep(record);
    if (file.bytes > this.#compactAt || this.#ended > this.#limits.ended) this.#compact();
  }

  /** The next line opens it again. */
  close(): void {
    clearTimeout(this.#closing);
    this.#closing = undefined;
    this.#file?.close();
    this.#file = undefined;
  }

  /** Held while one command follows another: there may be a thousand sandboxes, and few of them are busy. */
  #open(): AppendFile {
    this.#file ??= new AppendFile(this.#path);
    if (this.#closing === undefined) this.#closing = setTimeout(() => this.close(), heldMs).unref();
    else this.#closing.refresh();
    return this.#file;
  }

  #keep(record: ExecRecord): void {
    const before = this.#records.get(record.id);
    this.#ended += Number(hasEnded(record)) - Number(before !== undefined && hasEnded(before));
    this.#records.set(record.id, record);
  }

  #compact(): void {
    const kept: string[] = [];
    const dropped: ExecRecord[] = [];
    let bytes = 0;
    let ended = 0;
    for (const record of this.records.toReversed()) {
      const line = `${JSON.stringify(record)}\n`;
      const fits = bytes + line.length <= this.#limits.bytes * keptShare;
      if (hasEnded(record) && (!fits || ended + 1 > this.#limits.ended * keptShare)) {
        dropped.push(record);
        continue;
      }
      ended += Number(hasEnded(record));
      bytes += Buffer.byteLength(line);
      kept.push(line);
    }
    this.close();
    replaceFile(this.#path, kept.toReversed().join(''));
    // Records that all must stay may be longer than the limit.
    this.#compactAt = Math.max(this.#limits.bytes, bytes / keptShare);
    this.#ended = ended;
    for (const record of dropped) {
      this.#records.delete(record.id);
      this.#onDropped(record);
    }
  }
}

const hasEnded = (record: ExecRecord): boolean => record.state !== 'running';

/** Whole lines only: what comes after the last newline was never finished. */
function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').slice(0, -1);
  } catch (cause) {
    if (errno(cause) === 'ENOENT') return [];
    throw stateFailure('reading the execs of a sandbox', path, cause);
  }
}

/** A line that is no record tells nothing; the others still do. */
function parseRecord(line: string): ExecRecord | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return recordSchema.safeParse(value).success ? (value as ExecRecord) : undefined;
  } catch {
    return undefined;
  }
}
