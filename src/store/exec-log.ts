/**
 * The output of one exec on disk, in the order of arrival: all of it up to a bound, then the first segment and the last
 * ones. A write that was answered survives the death of this process, and is neither lost nor doubled by a repetition.
 *
 * Nothing is made on disk before the first byte. One write is under way at a time; what arrives meanwhile goes with the next.
 */

import { mkdirSync, readdirSync } from 'node:fs';
import { type Deferred, deferred } from '../lib/deferred.ts';
import type { Channel } from '../porter/output-sink.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { Captured, ExecLog, LogPiece, LogReadOptions } from '../sandboxes/ports.ts';
import { Bell } from './bell.ts';
import { captureLog } from './capture.ts';
import { channels, type LogView, readLog } from './exec-log-reader.ts';
import { RecentOutput } from './recent-output.ts';
import { emptySegment, type Offsets, removeSegment, repairSegment, type Segment } from './segment.ts';
import { type Chunk, SegmentWriter } from './segment-writer.ts';
import { errno, isOutOfSpace, stateFailure } from './state-failure.ts';
import { folderMode } from './state-folder.ts';
import { stoppable } from './stoppable.ts';

export interface ExecLogLimits {
  readonly segmentBytes: number;
  /** Bounds the index of output that comes in crumbs. */
  readonly segmentRuns: number;
  /** At least 2: the head, and the one that is written to. */
  readonly segments: number;
  readonly recentBytes: number;
}

/** 64 MB of output and at most 16 MB of index an exec. */
export const execLogLimits: ExecLogLimits = {
  segmentBytes: 4 * 2 ** 20,
  segmentRuns: 32_767,
  segments: 16,
  recentBytes: 256 * 1024,
};

const batchBytes = 2 ** 20;
const batchChunks = 256;

interface Pending {
  readonly channel: Channel;
  offset: number;
  data: Buffer;
  readonly done: Deferred<void>;
}

export interface ExecLogOptions {
  /** The exec has ended, so nothing more will come. */
  readonly over?: boolean;
  /** At `end()`. */
  readonly onEnd?: (log: ExecLogFiles) => void;
  readonly limits?: ExecLogLimits;
}

export async function openExecLog(folder: string, options: ExecLogOptions = {}): Promise<ExecLogFiles> {
  const segments: Segment[] = [];
  try {
    for (const number of segmentNumbers(folder)) {
      const segment = await repairSegment(folder, number);
      if (segment) segments.push(segment);
    }
  } catch (cause) {
    throw stateFailure('opening the output of a command', folder, cause);
  }
  return new ExecLogFiles(folder, segments, options);
}

function segmentNumbers(folder: string): number[] {
  try {
    const names = readdirSync(folder);
    const numbers = names.flatMap((name) => /^(\d{6,})\.(?:out|idx)$/.exec(name)?.[1] ?? []).map(Number);
    return [...new Set(numbers)].sort((a, b) => a - b);
  } catch (error) {
    if (errno(error) === 'ENOENT') return [];
    throw error;
  }
}

export class ExecLogFiles implements ExecLog {
  readonly stored: Offsets;
  readonly #folder: string;
  readonly #limits: ExecLogLimits;
  readonly #segments: Segment[];
  /** With what is not written yet. */
  readonly #accepted: Offsets;
  readonly #queue: Pending[] = [];
  readonly #changed = new Bell();
  /** A reader that holds moved on or went away. */
  readonly #released = new Bell();
  readonly #holders = new Set<Readonly<Offsets>>();
  readonly #view: LogView;
  readonly #onEnd: ((log: ExecLogFiles) => void) | undefined;
  #recent: RecentOutput | undefined;
  #writer: SegmentWriter | undefined;
  #draining: Promise<void> | undefined;
  #failure: SallyportError | undefined;
  #over: boolean;
  #closed = false;

  constructor(folder: string, segments: Segment[], options: ExecLogOptions) {
    this.#folder = folder;
    this.#segments = segments;
    this.#over = options.over ?? false;
    this.#limits = options.limits ?? execLogLimits;
    this.#onEnd = options.onEnd;
    this.stored = { ...(segments.at(-1)?.end ?? { stdout: 0, stderr: 0 }) };
    this.#accepted = { ...this.stored };
    if (segments.length === 0) this.#recent = new RecentOutput(this.#limits.recentBytes);
    this.#view = {
      folder,
      stored: this.stored,
      segments,
      recent: () => this.#recent,
      over: () => this.#over,
      closed: () => this.#closed,
      changed: (signal) => this.#changed.wait(signal),
    };
  }

  async write(channel: Channel, offset: number, data: Buffer): Promise<void> {
    const known = this.#accepted[channel];
    if (offset + data.length <= known) return this.#waitFor(channel, offset + data.length);
    this.#refuseIfImpossible(channel, offset);
    const done = deferred<void>();
    this.#queue.push({ channel, offset: known, data: data.subarray(known - offset), done });
    this.#accepted[channel] = offset + data.length;
    this.#draining ??= this.#drain();
    await done.promise;
  }

  /** With `hold`, held from this call on, until it is read to its end, left or aborted. Aborting it is no error. */
  read(options: LogReadOptions = {}): AsyncIterableIterator<LogPiece> {
    const position = { stdout: 0, stderr: 0, ...options.from };
    const until = options.follow
      ? { stdout: Number.POSITIVE_INFINITY, stderr: Number.POSITIVE_INFINITY }
      : { ...this.stored };
    if (options.hold) this.#holders.add(position);
    const moved = options.hold ? () => this.#released.ring() : () => {};
    return stoppable({
      signal: options.signal,
      values: (signal) => readLog({ view: this.#view, position, until, signal, moved }),
      onStop: () => {
        this.#holders.delete(position);
        this.#released.ring();
      },
    });
  }

  capture(channel: Channel | 'output', limitBytes: number): Promise<Captured> {
    return captureLog(this.#view, channel, limitBytes);
  }

  async end(): Promise<void> {
    while (this.#draining) await this.#draining;
    if (this.#over) return;
    this.#over = true;
    this.#changed.ring();
    this.#closeFiles();
    this.#onEnd?.(this);
  }

  /** What was accepted is still written, unless a reader holds it up. Readers come to their end. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#released.ring();
    while (this.#draining) await this.#draining;
    this.#changed.ring();
    this.#closeFiles();
  }

  /** Output is read from the disk from now on. */
  forgetRecent(): void {
    this.#recent = undefined;
  }

  async #waitFor(channel: Channel, offset: number): Promise<void> {
    while (this.stored[channel] < offset) {
      if (this.#failure) throw this.#failure;
      await this.#changed.wait();
    }
  }

  #refuseIfImpossible(channel: Channel, offset: number): void {
    if (this.#failure) throw this.#failure;
    if (this.#over || this.#closed) {
      throw lost(this.#folder, 'output came after the end of its command', 'Report this as a bug.');
    }
    const expected = this.#accepted[channel];
    if (offset <= expected) return;
    throw lost(
      this.#folder,
      `${offset - expected} bytes of ${channel} are missing before offset ${offset}`,
      'Run the command again.',
    );
  }

  async #drain(): Promise<void> {
    let finished: Deferred<void>[] = [];
    try {
      while (this.#queue.length > 0) {
        const writer = await this.#writerWithRoom();
        const batch = this.#nextBatch(writer.segment);
        finished = batch.finished;
        await writer.write(batch.chunks);
        for (const { run, data } of batch.chunks) {
          this.stored[run.channel] += run.length;
          if (this.#recent && !this.#recent.add(run, data)) this.#recent = undefined;
        }
        for (const done of finished) done.resolve();
        this.#changed.ring();
      }
    } catch (cause) {
      this.#failure = cause instanceof SallyportError ? cause : writeFailure(this.#folder, cause);
      for (const done of finished) done.reject(this.#failure);
      for (const { done } of this.#queue.splice(0)) done.reject(this.#failure);
      this.#changed.ring();
    } finally {
      this.#draining = undefined;
    }
  }

  async #writerWithRoom(): Promise<SegmentWriter> {
    const last = this.#segments.at(-1);
    if (last && !this.#isFull(last)) {
      this.#writer ??= new SegmentWriter(this.#folder, last);
      return this.#writer;
    }
    this.#closeFiles();
    if (!last) mkdirSync(this.#folder, { recursive: true, mode: folderMode });
    await this.#dropMiddle();
    const segment = emptySegment((last?.number ?? -1) + 1, this.stored);
    this.#segments.push(segment);
    this.#writer = new SegmentWriter(this.#folder, segment);
    return this.#writer;
  }

  #isFull(segment: Segment): boolean {
    return segment.bytes >= this.#limits.segmentBytes || segment.runs >= this.#limits.segmentRuns;
  }

  /** Makes room for one more segment. Waits for readers that hold the one to go: that is how they slow the program. */
  async #dropMiddle(): Promise<void> {
    while (this.#segments.length >= this.#limits.segments) {
      const oldest = this.#segments[1];
      if (!oldest) return;
      if (this.#isHeld(oldest)) {
        if (this.#closed)
          throw lost(this.#folder, 'a reader did not take it before the end', 'Run the command again.');
        await this.#released.wait();
        continue;
      }
      this.#segments.splice(1, 1);
      await removeSegment(this.#folder, oldest.number);
    }
  }

  #isHeld(segment: Segment): boolean {
    return [...this.#holders].some((has) => channels.some((channel) => has[channel] < segment.end[channel]));
  }

  /** As much of the queue as the segment takes. The last one may be cut in two; it is done when its rest is. */
  #nextBatch(segment: Segment): { chunks: Chunk[]; finished: Deferred<void>[] } {
    const chunks: Chunk[] = [];
    const finished: Deferred<void>[] = [];
    let room = Math.min(batchBytes, this.#limits.segmentBytes - segment.bytes);
    let runs = this.#limits.segmentRuns - segment.runs;
    for (let next = this.#queue[0]; next && room > 0 && chunks.length < batchChunks; next = this.#queue[0]) {
      const { channel, offset } = next;
      if (chunks.at(-1)?.run.channel !== channel && runs-- === 0) break;
      const data = next.data.subarray(0, room);
      chunks.push({ run: { channel, offset, length: data.length }, data });
      room -= data.length;
      next.offset += data.length;
      next.data = next.data.subarray(data.length);
      if (next.data.length > 0) break;
      finished.push(next.done);
      this.#queue.shift();
    }
    return { chunks, finished };
  }

  #closeFiles(): void {
    this.#writer?.close();
    this.#writer = undefined;
  }
}

function lost(folder: string, why: string, advice: string): SallyportError {
  return new SallyportError('output_lost', `output could not be stored: ${why}`, {
    advice,
    details: { path: folder },
  });
}

function writeFailure(folder: string, cause: unknown): SallyportError {
  const reason = isOutOfSpace(cause) ? 'no space left on the disk' : String(cause);
  return new SallyportError('output_lost', `output could not be stored: ${reason}`, {
    details: { path: folder },
    cause,
  });
}
