/**
 * A stretch of an exec's output on disk: `NNNNNN.out` has the bytes as they came, `NNNNNN.idx` says whose they are.
 *
 * The index has lines of 32 characters. The first says where the segment begins in each channel, every other one is a run:
 * channel, length, offset in the channel. Data is written before its run, so what the index does not know was never
 * reported as stored, and is cut off at open.
 */

import { type FileHandle, open, readFile, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import type { Channel } from '../porter/output-sink.ts';
import { errno } from './state-failure.ts';

export type Offsets = Record<Channel, number>;

export interface Run {
  readonly channel: Channel;
  readonly offset: number;
  readonly length: number;
}

export interface Segment {
  readonly number: number;
  readonly start: Readonly<Offsets>;
  /** These three change as it is written to. */
  readonly end: Offsets;
  bytes: number;
  runs: number;
}

export const lineBytes = 32;

const linePattern = /^([012]) (\d{14}) (\d{14})\n$/;
const startMark = 0;
const numberOf: Readonly<Record<Channel, 1 | 2>> = { stdout: 1, stderr: 2 };

export const dataFile = (folder: string, number: number): string => join(folder, `${digits(number, 6)}.out`);
export const indexFile = (folder: string, number: number): string => join(folder, `${digits(number, 6)}.idx`);

export function emptySegment(number: number, start: Readonly<Offsets>): Segment {
  return { number, start: { ...start }, end: { ...start }, bytes: 0, runs: 0 };
}

export const startLine = (start: Readonly<Offsets>): string => line(startMark, start.stdout, start.stderr);

export const runLine = (run: Run): string => line(numberOf[run.channel], run.length, run.offset);

/** Undefined for what is no run. */
export function parseRun(text: string): Run | undefined {
  const match = linePattern.exec(text);
  if (!match || match[1] === '0') return undefined;
  const channel = match[1] === '1' ? 'stdout' : 'stderr';
  return { channel, length: Number(match[2]), offset: Number(match[3]) };
}

/** What is left of a segment after a crash, made whole; undefined, and its files gone, if that is nothing. */
export async function repairSegment(folder: string, number: number): Promise<Segment | undefined> {
  const index = await readIfThere(indexFile(folder, number));
  const header = index && linePattern.exec(index.toString('latin1', 0, lineBytes));
  if (!index || !header || header[1] !== String(startMark)) {
    await removeSegment(folder, number);
    return undefined;
  }
  const segment = emptySegment(number, { stdout: Number(header[2]), stderr: Number(header[3]) });
  const data = await open(dataFile(folder, number), 'a+', 0o600);
  try {
    const kept = (await data.stat()).size;
    for (let at = lineBytes; at + lineBytes <= index.length; at += lineBytes) {
      const run = parseRun(index.toString('latin1', at, at + lineBytes));
      if (!run || run.offset !== segment.end[run.channel] || segment.bytes + run.length > kept) break;
      addRun(segment, run);
    }
    if (kept > segment.bytes) await data.truncate(segment.bytes);
  } finally {
    await data.close();
  }
  const known = lineBytes * (segment.runs + 1);
  if (index.length > known) await truncate(indexFile(folder, number), known);
  return segment;
}

export function addRun(segment: Segment, run: Run): void {
  segment.end[run.channel] += run.length;
  segment.bytes += run.length;
  segment.runs++;
}

/** The index first: data without an index is nothing, but an index without data would promise something. */
export async function removeSegment(folder: string, number: number): Promise<void> {
  await rm(indexFile(folder, number), { force: true });
  await rm(dataFile(folder, number), { force: true });
}

/** Runs from the `from`-th on, at most `count`. */
export async function readRuns(index: FileHandle, from: number, count: number): Promise<Run[]> {
  const block = Buffer.allocUnsafe(count * lineBytes);
  const { bytesRead } = await index.read(block, 0, block.length, lineBytes * (from + 1));
  const runs: Run[] = [];
  for (let at = 0; at + lineBytes <= bytesRead; at += lineBytes) {
    const run = parseRun(block.toString('latin1', at, at + lineBytes));
    if (!run) break;
    runs.push(run);
  }
  return runs;
}

async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (errno(error) === 'ENOENT') return undefined;
    throw error;
  }
}

const line = (mark: number, first: number, second: number): string =>
  `${mark} ${digits(first, 14)} ${digits(second, 14)}\n`;

const digits = (value: number, count: number): string => String(value).padStart(count, '0');
