/** Lines in a file of bounded size: when it is full it becomes `<name>.1`, the one before `<name>.2`, and the last goes. */

import { renameSync, rmSync } from 'node:fs';
import { AppendFile } from './append-file.ts';
import { errno, stateFailure } from './state-failure.ts';

export interface Rotation {
  readonly maxBytes: number;
  /** Files in all, with the one that is written to. */
  readonly keep: number;
}

export class RotatingFile {
  readonly #path: string;
  readonly #rotation: Rotation;
  /** None after a rotation that failed half-way; the next line tries again. */
  #file: AppendFile | undefined;

  constructor(path: string, rotation: Rotation) {
    this.#path = path;
    this.#rotation = rotation;
    this.#file = new AppendFile(path);
  }

  append(line: string): void {
    const full = this.#rotation.maxBytes - Buffer.byteLength(line);
    if (this.#file && this.#file.bytes > 0 && this.#file.bytes >= full) {
      this.close();
      ageFiles(this.#path, this.#rotation.keep);
    }
    this.#file ??= new AppendFile(this.#path);
    this.#file.append(line);
  }

  close(): void {
    this.#file?.close();
    this.#file = undefined;
  }
}

/** The oldest goes, every other one becomes older. */
export function ageFiles(path: string, keep: number): void {
  try {
    rmSync(agedPath(path, keep - 1), { force: true });
    for (let age = keep - 2; age >= 0; age--) moveIfThere(agedPath(path, age), agedPath(path, age + 1));
  } catch (cause) {
    throw stateFailure('rotating a file', path, cause);
  }
}

export const agedPath = (path: string, age: number): string => (age === 0 ? path : `${path}.${age}`);

function moveIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (errno(error) !== 'ENOENT') throw error;
  }
}
