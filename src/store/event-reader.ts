/**
 * One reader of the event log: from file to file, in blocks, never holding more than a block and the event it is at. Once it
 * has caught up it is given what comes from memory, until it falls behind again.
 */

import { type FileHandle, open } from 'node:fs/promises';
import type { SallyportError } from '../protocol/errors.ts';
import type { SallyEvent } from '../protocol/events.ts';
import { eventFile, sequenceOf } from './event-files.ts';
import { errno, stateFailure } from './state-failure.ts';

export interface EventSource {
  readonly folder: string;
  /** An event that is still in memory; the last one always is. */
  recent(sequence: number): SallyEvent | undefined;
  /** The file in which an event of this number is, or will be. */
  fileOf(sequence: number): number | undefined;
  isNewest(first: number): boolean;
  /** The number of the last event. */
  last(): number;
  over(): boolean;
  changed(signal: AbortSignal): Promise<void>;
  gone(since: number): SallyportError;
}

const blockBytes = 64 * 1024;

export async function* readEvents(
  source: EventSource,
  since: number,
  signal: AbortSignal,
): AsyncGenerator<SallyEvent, void, undefined> {
  let last = since;
  while (!signal.aborted) {
    if (last >= source.last()) {
      if (source.over()) return;
      await source.changed(signal);
      continue;
    }
    const recent = source.recent(last + 1);
    if (recent !== undefined) {
      last = recent.sequence;
      yield recent;
      continue;
    }
    const first = source.fileOf(last + 1);
    if (first === undefined) throw source.gone(last);
    for await (const event of readFile(source, first, last, signal)) {
      last = event.sequence;
      yield event;
    }
  }
}

/** What comes after `since` in one file, to its end as it is now. */
async function* readFile(
  source: EventSource,
  first: number,
  since: number,
  signal: AbortSignal,
): AsyncGenerator<SallyEvent, void, undefined> {
  let last = since;
  const file = await openFile(source, first, since);
  try {
    const lines = new LineReader(file);
    // Asked before reading: all of them must be in this file, unless a newer one was begun.
    const isNewest = source.isNewest(first);
    const target = source.last();
    for (let line = await lines.next(); line !== undefined; line = await lines.next()) {
      const sequence = sequenceOf(line);
      if (sequence !== undefined && sequence <= last) continue;
      if (sequence !== last + 1) throw source.gone(last);
      last = sequence;
      yield JSON.parse(line) as SallyEvent;
      if (signal.aborted) return;
    }
    // Numbers that no file has, because a newer one begins after them: they are lost.
    if (last < target && (isNewest || source.fileOf(last + 1) === first)) throw source.gone(last);
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
