/**
 * A file of lines that only grows. A line is there as a whole or not at all: what a crash left of an unfinished one is cut
 * off at the next open, and what a full disk left of one is cut off at once.
 */

import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';
import { stateFailure } from './state-failure.ts';
import { fileMode } from './state-folder.ts';

const newline = 0x0a;
const blockBytes = 64 * 1024;

export class AppendFile {
  readonly path: string;
  readonly #fd: number;
  readonly #inode: number;
  #bytes: number;
  #closed = false;

  constructor(path: string) {
    this.path = path;
    try {
      this.#fd = openSync(path, 'a+', fileMode);
    } catch (cause) {
      throw stateFailure('opening a file', path, cause);
    }
    try {
      const { ino, size } = fstatSync(this.#fd);
      this.#inode = ino;
      this.#bytes = cutTornTail(this.#fd, size);
    } catch (cause) {
      closeSync(this.#fd);
      throw stateFailure('repairing a file', path, cause);
    }
  }

  /** What is in it, in whole lines. */
  get bytes(): number {
    return this.#bytes;
  }

  /** It is not given to another file while this one is open. */
  get inode(): number {
    return this.#inode;
  }

  /**
   * Lines that another process appended since; what a killed one left of a line is cut off. The caller holds a lock that all
   * writers take. Undefined: the file is shorter than it was, or grew by more than `mostBytes`.
   */
  readOn(mostBytes: number): readonly string[] | undefined {
    try {
      const { size } = fstatSync(this.#fd);
      if (size < this.#bytes || size - this.#bytes > mostBytes) return undefined;
      const data = readRange(this.#fd, this.#bytes, size);
      const whole = data.lastIndexOf(newline) + 1;
      if (this.#bytes + whole < size) ftruncateSync(this.#fd, this.#bytes + whole);
      this.#bytes += whole;
      return linesIn(data.subarray(0, whole));
    } catch (cause) {
      throw stateFailure('reading new lines', this.path, cause);
    }
  }

  lines(): readonly string[] {
    try {
      return linesIn(readRange(this.#fd, 0, this.#bytes));
    } catch (cause) {
      throw stateFailure('reading lines', this.path, cause);
    }
  }

  /** In the file when it returns. `line` has no newline of its own. */
  append(line: string): void {
    const data = Buffer.from(`${line}\n`);
    try {
      for (let done = 0; done < data.length; ) done += writeSync(this.#fd, data, done);
    } catch (cause) {
      this.#cutBack();
      throw stateFailure('writing a line', this.path, cause);
    }
    this.#bytes += data.length;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#fd);
  }

  /** Half a line would spoil the next one. */
  #cutBack(): void {
    try {
      ftruncateSync(this.#fd, this.#bytes);
    } catch {
      // The next open cuts it off; the caller hears of the failure that came first.
    }
  }
}

function readRange(fd: number, from: number, to: number): Buffer {
  const data = Buffer.allocUnsafe(to - from);
  let done = 0;
  while (done < data.length) {
    const got = readSync(fd, data, done, data.length - done, from + done);
    if (got === 0) break;
    done += got;
  }
  return data.subarray(0, done);
}

/** `data` ends with a newline, or is empty. */
const linesIn = (data: Buffer): readonly string[] => data.toString('utf8').split('\n').slice(0, -1);

/** As nearly every file does, so that it costs next to nothing to ask. */
function endsWithNewline(fd: number, size: number): boolean {
  const last = Buffer.allocUnsafe(1);
  return readSync(fd, last, 0, 1, size - 1) === 1 && last[0] === newline;
}

/** Returns the size without the unfinished last line. */
function cutTornTail(fd: number, size: number): number {
  if (size === 0 || endsWithNewline(fd, size)) return size;
  const block = Buffer.alloc(Math.min(size, blockBytes));
  let end = size;
  while (end > 0) {
    const from = Math.max(0, end - block.length);
    const got = readSync(fd, block, 0, end - from, from);
    const last = block.subarray(0, got).lastIndexOf(newline);
    if (last >= 0) {
      end = from + last + 1;
      break;
    }
    end = from;
  }
  if (end < size) ftruncateSync(fd, end);
  return end;
}
