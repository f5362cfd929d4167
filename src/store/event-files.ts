/**
 * The files of the event log: `<first sequence, 12 digits>.jsonl`, one event a line, and `sequence`, which remembers what
 * numbers may have been given out, so that none is given twice even if the newest file is lost.
 */

import { readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { errno, stateFailure } from './state-failure.ts';
import { replaceFile } from './state-folder.ts';

const filePattern = /^(\d{12})\.jsonl$/;
const newline = 0x0a;

export const eventFile = (folder: string, first: number): string =>
  join(folder, `${String(first).padStart(12, '0')}.jsonl`);

/** First sequence of each file, oldest first. */
export function listEventFiles(folder: string): number[] {
  return readdirSync(folder)
    .flatMap((name) => filePattern.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

export function removeEventFile(folder: string, first: number): void {
  rmSync(eventFile(folder, first), { force: true });
}

/** The number that a line begins with; undefined for what is no event. */
export function sequenceOf(line: string): number | undefined {
  const match = /^\{"sequence":(\d{1,15}),/.exec(line);
  return match && line.endsWith('}') ? Number(match[1]) : undefined;
}

/**
 * The number of the last event in a file, `first - 1` if there is none. What comes after it (half a line of a crash, or
 * the zeros that a machine leaves that lost power) is cut off.
 */
export function repairEventFile(folder: string, first: number): number {
  const path = eventFile(folder, first);
  try {
    const data = readFileSync(path);
    let end = data.lastIndexOf(newline) + 1;
    let last: number | undefined;
    while (end > 0 && last === undefined) {
      const start = end < 2 ? 0 : data.lastIndexOf(newline, end - 2) + 1;
      last = sequenceOf(data.toString('utf8', start, end - 1));
      if (last === undefined) end = start;
    }
    if (end < data.length) truncateSync(path, end);
    return last ?? first - 1;
  } catch (cause) {
    throw stateFailure('reading the event log', path, cause);
  }
}

export interface Reserved {
  /** First sequence of the newest file. */
  readonly newest: number;
  /** No number above this was given out. */
  readonly upTo: number;
}

const reservedPath = (folder: string): string => join(folder, 'sequence');

export function saveReserved(folder: string, { newest, upTo }: Reserved): void {
  replaceFile(reservedPath(folder), `${newest} ${upTo}\n`);
}

export function loadReserved(folder: string): Reserved | undefined {
  try {
    const match = /^(\d{1,15}) (\d{1,15})\n$/.exec(readFileSync(reservedPath(folder), 'utf8'));
    return match ? { newest: Number(match[1]), upTo: Number(match[2]) } : undefined;
  } catch (cause) {
    if (errno(cause) === 'ENOENT') return undefined;
    throw stateFailure('reading the event log', reservedPath(folder), cause);
  }
}
