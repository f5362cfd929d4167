/**
 * All of an exec's output in memory, as long as there is little of it: most commands print a few lines, and their result
 * then needs no look at the disk. The first byte too many ends it for good.
 */

import type { Channel } from '../porter/output-sink.ts';
import type { Run } from './segment.ts';

/** Each run costs more memory than its bytes. */
const mostRuns = 4096;

export class RecentOutput {
  readonly #limitBytes: number;
  readonly #runs: Run[] = [];
  #data: Buffer = Buffer.alloc(0);
  #bytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** False: it is too much, and this object is of no use any more. */
  add(run: Run, data: Buffer): boolean {
    const last = this.#runs.at(-1);
    const joins = last?.channel === run.channel;
    if (this.#bytes + data.length > this.#limitBytes || (!joins && this.#runs.length === mostRuns))
      return false;
    this.#makeRoom(data.length);
    data.copy(this.#data, this.#bytes);
    this.#bytes += data.length;
    if (last && joins) this.#runs[this.#runs.length - 1] = { ...last, length: last.length + data.length };
    else this.#runs.push(run);
    return true;
  }

  /** What is here now, in the order of arrival; more may be added while somebody goes through it. Pieces stay valid. */
  *pieces(): Generator<{ readonly run: Run; readonly data: Buffer }> {
    let at = 0;
    for (const run of [...this.#runs]) {
      yield { run, data: this.#data.subarray(at, at + run.length) };
      at += run.length;
    }
  }

  all(channel: Channel | 'output'): Buffer {
    if (channel === 'output') return Buffer.from(this.#data.subarray(0, this.#bytes));
    return Buffer.concat(
      [...this.pieces()].filter(({ run }) => run.channel === channel).map(({ data }) => data),
    );
  }

  /** Into a new buffer, so that pieces that were handed out are not touched. */
  #makeRoom(bytes: number): void {
    const needed = this.#bytes + bytes;
    if (needed <= this.#data.length) return;
    const grown = Buffer.alloc(Math.min(this.#limitBytes, Math.max(1024, 2 * needed)));
    this.#data.copy(grown, 0, 0, this.#bytes);
    this.#data = grown;
  }
}
