/**
 * One reader of an exec's output, in the order of arrival. Where it is, is told by how much of each channel it has; so a
 * client that comes back after any interruption goes on where it was. It holds one block of data at a time.
 */

import { type FileHandle, open } from 'node:fs/promises';
import type { Channel } from '../porter/output-sink.ts';
import type { LogPiece } from '../sandboxes/ports.ts';
import type { RecentOutput } from './recent-output.ts';
import { dataFile, indexFile, type Offsets, type Run, readRuns, type Segment } from './segment.ts';
import { errno, stateFailure } from './state-failure.ts';

export const channels: readonly Channel[] = ['stdout', 'stderr'];

const pieceBytes = 64 * 1024;
const runsAtOnce = 1024;

/** The log, as a reader sees it. */
export interface LogView {
  readonly folder: string;
  readonly stored: Readonly<Offsets>;
  readonly segments: readonly Segment[];
  recent(): RecentOutput | undefined;
  /** Nothing more will come. */
  over(): boolean;
  /** The files may be gone: readers stop where they are. */
  closed(): boolean;
  changed(signal: AbortSignal): Promise<void>;
}

export interface Reading {
  readonly view: LogView;
  /** What it has; moves as pieces are handed out. */
  readonly position: Offsets;
  /** Where it stops; infinite for one that follows. */
  readonly until: Readonly<Offsets>;
  readonly signal: AbortSignal;
  /** The position moved. */
  readonly moved: () => void;
}

export async function* readLog(reading: Reading): AsyncGenerator<LogPiece, void, undefined> {
  const { view, signal } = reading;
  for (let recent = view.recent(); recent && !isDone(reading); recent = view.recent()) {
    for (const { run, data } of recent.pieces()) {
      const { from, to } = wanted(reading, run);
      for (let at = from; at < to && !signal.aborted; at += pieceBytes) {
        const offset = run.offset + at;
        yield take(reading, run.channel, offset, data.subarray(at, Math.min(to, at + pieceBytes)));
      }
    }
    if (signal.aborted || isDone(reading)) return;
    if (hasAll(reading)) await view.changed(signal);
  }
  yield* readSegments(reading);
}

async function* readSegments(reading: Reading): AsyncGenerator<LogPiece, void, undefined> {
  const { view, signal } = reading;
  let opened: OpenSegment | undefined;
  let passed = -1;
  try {
    while (!signal.aborted && !isDone(reading)) {
      const segment =
        opened?.segment ?? view.segments.find((one) => one.number > passed && isUnread(reading, one));
      if (!segment || (segment.runs === 0 && segment === view.segments.at(-1))) {
        if (segment) yield* gapsBefore(reading, segment);
        // Without a segment the writer has dropped the last one, and waits to begin the next.
        if ((!segment || hasAll(reading)) && !isDone(reading)) await view.changed(signal);
        continue;
      }
      if (!opened) {
        yield* gapsBefore(reading, segment);
        opened = await OpenSegment.open(view, segment);
        // Dropped in this moment: the next one tells how much is missing.
        if (!opened) continue;
      }
      yield* opened.pieces(reading);
      if (view.segments.at(-1) !== segment && opened.isRead) {
        passed = segment.number;
        await opened.close();
        opened = undefined;
      } else if (hasAll(reading) && !isDone(reading)) {
        await view.changed(signal);
      }
    }
  } finally {
    await opened?.close();
  }
}

const isUnread = ({ position }: Reading, segment: Segment): boolean =>
  channels.some((channel) => position[channel] < segment.end[channel]);

const hasAll = ({ view, position }: Reading): boolean =>
  channels.every((channel) => position[channel] >= view.stored[channel]);

/** Has what it wanted, or all there will ever be. */
function isDone(reading: Reading): boolean {
  const { view, position, until } = reading;
  if (view.closed() || (view.over() && hasAll(reading))) return true;
  return channels.every((channel) => position[channel] >= until[channel]);
}

function* gapsBefore(reading: Reading, segment: Segment): Generator<LogPiece> {
  const { position, until } = reading;
  for (const channel of channels) {
    const offset = position[channel];
    const droppedBytes = Math.min(segment.start[channel], until[channel]) - offset;
    if (droppedBytes <= 0) continue;
    position[channel] += droppedBytes;
    reading.moved();
    yield { channel, offset, droppedBytes };
  }
}

/** The part of a run that this reader wants, from and to within the run. */
function wanted({ position, until }: Reading, run: Run): { readonly from: number; readonly to: number } {
  const within = (offset: number): number => Math.min(run.length, Math.max(0, offset - run.offset));
  return { from: within(position[run.channel]), to: within(until[run.channel]) };
}

function take(reading: Reading, channel: Channel, offset: number, data: Buffer): LogPiece {
  reading.position[channel] = offset + data.length;
  reading.moved();
  return { channel, offset, data };
}

interface Part {
  readonly channel: Channel;
  readonly offset: number;
  length: number;
}

/** A segment with its files open: dropping it does not disturb who is reading it. */
class OpenSegment {
  readonly segment: Segment;
  readonly #path: string;
  readonly #data: FileHandle;
  readonly #index: FileHandle;
  #nextRun = 0;
  /** Where that run begins in the data file. */
  #at = 0;

  private constructor(path: string, segment: Segment, data: FileHandle, index: FileHandle) {
    this.#path = path;
    this.segment = segment;
    this.#data = data;
    this.#index = index;
  }

  /** Undefined: it was dropped. */
  static async open(view: LogView, segment: Segment): Promise<OpenSegment | undefined> {
    const path = dataFile(view.folder, segment.number);
    let data: FileHandle | undefined;
    try {
      data = await open(path, 'r');
      return new OpenSegment(path, segment, data, await open(indexFile(view.folder, segment.number), 'r'));
    } catch (cause) {
      await data?.close();
      const dropped = view.closed() || !view.segments.includes(segment);
      if (errno(cause) === 'ENOENT' && dropped) return undefined;
      throw stateFailure('reading the output of a command', path, cause);
    }
  }

  get isRead(): boolean {
    return this.#nextRun === this.segment.runs;
  }

  async close(): Promise<void> {
    await this.#data.close();
    await this.#index.close();
  }

  /** All that is stored in it now and that the reader wants. */
  async *pieces(reading: Reading): AsyncGenerator<LogPiece, void, undefined> {
    while (!this.isRead && !reading.signal.aborted) {
      const runs = await readRuns(
        this.#index,
        this.#nextRun,
        Math.min(runsAtOnce, this.segment.runs - this.#nextRun),
      );
      if (runs.length === 0)
        throw stateFailure('reading the output of a command', this.#path, 'the index is damaged');
      yield* this.#piecesOf(runs, reading);
      this.#nextRun += runs.length;
      this.#at += runs.reduce((sum, run) => sum + run.length, 0);
    }
  }

  async *#piecesOf(runs: readonly Run[], reading: Reading): AsyncGenerator<LogPiece, void, undefined> {
    let at = this.#at;
    let block = new Block(at);
    for (const run of runs) {
      const { from, to } = wanted(reading, run);
      for (let done = from; done < to; ) {
        // What is skipped is not read either: a block is one stretch of the file.
        if (block.end !== at + done || block.isFull) {
          yield* this.#piecesIn(block, reading);
          block = new Block(at + done);
        }
        done += block.add(run.channel, run.offset + done, to - done);
        if (reading.signal.aborted) return;
      }
      at += run.length;
    }
    yield* this.#piecesIn(block, reading);
  }

  async *#piecesIn(block: Block, reading: Reading): AsyncGenerator<LogPiece, void, undefined> {
    if (block.parts.length === 0) return;
    const data = Buffer.allocUnsafe(block.length);
    const { bytesRead } = await this.#data.read(data, 0, data.length, block.start);
    if (bytesRead < data.length)
      throw stateFailure('reading the output of a command', this.#path, 'it is too short');
    let at = 0;
    for (const { channel, offset, length } of block.parts) {
      if (reading.signal.aborted) return;
      yield take(reading, channel, offset, data.subarray(at, at + length));
      at += length;
    }
  }
}

/** A stretch of the data file that is read at once. */
class Block {
  readonly start: number;
  readonly parts: Part[] = [];
  length = 0;

  constructor(start: number) {
    this.start = start;
  }

  get end(): number {
    return this.start + this.length;
  }

  get isFull(): boolean {
    return this.length === pieceBytes;
  }

  /** Returns how much of it fitted. */
  add(channel: Channel, offset: number, length: number): number {
    const fitting = Math.min(length, pieceBytes - this.length);
    const last = this.parts.at(-1);
    if (last?.channel === channel) last.length += fitting;
    else this.parts.push({ channel, offset, length: fitting });
    this.length += fitting;
    return fitting;
  }
}
