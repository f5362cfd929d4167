/**
 * Writes to one segment, data before index. What it was told to write is known to the segment only when both are done.
 *
 * Much data is written on another thread. Opening, closing and a few lines are done here: that is short, and most commands print no
 * more, whose time would go into waiting for threads.
 */

import { closeSync, constants, openSync, writev, writevSync } from 'node:fs';
import {
  addRun,
  dataFile,
  indexFile,
  lineBytes,
  type Run,
  runLine,
  type Segment,
  startLine,
} from './segment.ts';
import { fileMode } from './state-folder.ts';

const mostHereBytes = 16 * 1024;

export interface Chunk {
  readonly run: Run;
  readonly data: Buffer;
}

export class SegmentWriter {
  readonly segment: Segment;
  readonly #folder: string;
  #data: number | undefined;
  #index: number | undefined;

  constructor(folder: string, segment: Segment) {
    this.#folder = folder;
    this.segment = segment;
  }

  async write(chunks: readonly Chunk[]): Promise<void> {
    const { segment } = this;
    this.#data ??= openForWriting(dataFile(this.#folder, segment.number));
    await writeAll(
      this.#data,
      chunks.map((chunk) => chunk.data),
      segment.bytes,
    );
    const runs = joined(chunks);
    this.#index ??= openForWriting(indexFile(this.#folder, segment.number));
    const begun = segment.runs > 0 ? '' : startLine(segment.start);
    const position = begun === '' ? lineBytes * (segment.runs + 1) : 0;
    await writeAll(this.#index, [Buffer.from(begun + runs.map(runLine).join(''))], position);
    for (const run of runs) addRun(segment, run);
  }

  /** Not while a write is under way. */
  close(): void {
    const files = [this.#data, this.#index];
    this.#data = undefined;
    this.#index = undefined;
    for (const file of files) if (file !== undefined) closeSync(file);
  }
}

/** Neighbours of one channel are one run. */
function joined(chunks: readonly Chunk[]): Run[] {
  const runs: Run[] = [];
  for (const { run } of chunks) {
    const last = runs.at(-1);
    if (last?.channel === run.channel) runs[runs.length - 1] = { ...last, length: last.length + run.length };
    else runs.push(run);
  }
  return runs;
}

/** Not for appending: a position is given with every write, so that what a failed one left behind is overwritten. */
function openForWriting(path: string): number {
  return openSync(path, constants.O_RDWR | constants.O_CREAT, fileMode);
}

async function writeAll(fd: number, buffers: readonly Buffer[], position: number): Promise<void> {
  let rest = buffers.filter((buffer) => buffer.length > 0);
  let at = position;
  while (rest.length > 0) {
    let written = await writeSome(fd, rest, at);
    at += written;
    rest = rest.flatMap((buffer) => {
      const done = Math.min(written, buffer.length);
      written -= done;
      return done === buffer.length ? [] : [buffer.subarray(done)];
    });
  }
}

/** A disk that fills up takes a part first; the next attempt then says why. */
async function writeSome(fd: number, buffers: readonly Buffer[], position: number): Promise<number> {
  const bytes = buffers.reduce((sum, buffer) => sum + buffer.length, 0);
  if (bytes <= mostHereBytes) return writevSync(fd, buffers, position);
  return await new Promise((resolve, reject) => {
    writev(fd, buffers, position, (error, written) => {
      if (error) reject(error);
      else resolve(written);
    });
  });
}
