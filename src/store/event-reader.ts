/**
 * One reader of the event log: from file to file, in blocks, never holding more than a block and the event it is at. One who
 * has caught up is given what comes from memory.
 */

import { type FileHandle, open } from 'node:fs/promises';
import type { SallyportError } from '../protocol/errors.ts';
import type { SallyEvent } from '../protocol/events.ts';
import { eventFile, sequenceOf } from './event-files.ts';
import { errno, stateFailure } from './state-failure.ts';

export interface EventSource {
  readonly folder: string;
  /** The file in which an event of this number is, or will be. */
  fileOf(sequence: number): number | undefined;
  isNewest(first: number): boolean;
  /** The number of the last event. */
  last(): number;
  over(): boolean;
  changed(signal: AbortSignal): Promise<void>;
  /** Undefined: not in memory. */
  recent(sequence: number): SallyEvent | undefined;
  gone(since: number): SallyportError;
}

const blockBytes = 64 * 1024;

export async function* readEvents(
  source: EventSource,
  since: number,
  signal: AbortSignal,
): AsyncGenerator<SallyEvent, void, undefined> {
  const position = { last: since };
  while (!signal.aborted) {
    const { last } = position;
    if (last >= source.last()) {
      if (source.over()) return;
      await source.changed(signal);
      continue;
    }
    const recent = source.recent(last + 1);
    if (recent !== undefined) {
      position.last = recent.sequence;
      yield recent;
      continue;
    }
    const first = source.fileOf(last + 1);
    if (first === undefined) throw source.gone(last);
    const end = yield* readFile(source, first, position, signal);
    // Numbers that no file has, because a newer one begins after them: they are lost.
    const isLost = position.last < source.last() && source.fileOf(position.last + 1) === first;
    if (!signal.aborted && end === 'whole' && isLost) throw source.gone(position.last);
  }
}

/**
 * What comes after the position in one file, until there is no more now (`caught-up`), or until there is a newer file and
 * this one is read to its end (`whole`).
 */
async function* readFile(
  source: EventSource,
  first: number,
  position: { last: number },
  signal: AbortSignal,
): AsyncGenerator<SallyEvent, 'caught-up' | 'whole', undefined> {
  const file = await openFile(source, first, position.last);
  try {
    const lines = new LineReader(file);
    while (!signal.aborted) {
      // Asked before reading: what is appended in between is then read in the next round.
      const complete = !source.isNewest(first) || source.over();
      const target = source.last();
      for (let line = await lines.next(); line !== undefined; line = await lines.next()) {
        const sequence = sequenceOf(line);
        if (sequence !== undefined && sequence <= position.last) continue;
        if (sequence !== position.last + 1) throw source.gone(position.last);
        position.last = sequence;
        yield JSON.parse(line) as SallyEvent;
        if (signal.aborted) return 'caught-up';
      }
      if (complete) return 'whole';
      if (position.last < target) throw source.gone(position.last);
      if (position.last >= source.last()) return 'caught-up';
    }
    return 'caught-up';
  } finally {
    await file.close();
  }
}

async function openFile(source: EventSource, first: number, since: number): Promise<FileHandle> {
  const path = eventFile(source.folder, first);
  try {
    return await open(path, 'r');
  } catch (cause) {
    // Rotated away since it was chosen.
    throw errno(cause) === 'ENOENT' ? source.gone(since) : stateFailure('reading the event log', path, cause);
  }
}

/** Whole lines of a file that may still grow. */
class LineReader {
  readonly #file: FileHandle;
  #position = 0;
  #rest = Buffer.alloc(0);

  constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Undefined: there is no further whole line, now. */
  async next(): Promise<string | undefined> {
    for (;;) {
      const end = this.#rest.indexOf(0x0a);
      if (end >= 0) {
        const line = this.#rest.toString('utf8', 0, end);
        this.#rest = this.#rest.subarray(end + 1);
        return line;
      }
      const block = Buffer.allocUnsafe(blockBytes);
      const { bytesRead } = await this.#file.read(block, 0, blockBytes, this.#position);
      if (bytesRead === 0) {
        // Half a line may be taken back by its writer, when the disk is full: read it again the next time.
        this.#position -= this.#rest.length;
        this.#rest = Buffer.alloc(0);
        return undefined;
      }
      this.#position += bytesRead;
      this.#rest = Buffer.concat([this.#rest, block.subarray(0, bytesRead)]);
    }
  }
}
