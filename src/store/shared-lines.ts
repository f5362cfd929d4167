/**
 * Lines in a file that rotates (`rotating-file.ts`) and that several processes write. The caller holds a lock that all of them take
 * at every call, and reads what the others wrote before it appends.
 */

import { statSync } from 'node:fs';
import { AppendFile } from './append-file.ts';
import { agedPath, ageFiles, type Rotation } from './rotating-file.ts';

export class SharedLines {
  readonly #path: string;
  readonly #rotation: Rotation;
  readonly #beforeRotation: () => void;
  /** None before the first `reopen`, and after a rotation that failed half-way. */
  #file: AppendFile | undefined;

  /** `beforeRotation` is called while every file is still there. */
  constructor(path: string, rotation: Rotation, beforeRotation: () => void) {
    this.#path = path;
    this.#rotation = rotation;
    this.#beforeRotation = beforeRotation;
  }

  /** Whether the newest file is the open one, and as this process left it. */
  get isCurrent(): boolean {
    const facts = statSync(this.#path, { throwIfNoEntry: false });
    return this.#file !== undefined && facts?.ino === this.#file.inode && facts.size === this.#file.bytes;
  }

  /** What a killed process left of the last line is cut off. */
  reopen(): AppendFile {
    this.close();
    this.#file = new AppendFile(this.#path);
    return this.#file;
  }

  /**
   * Lines that other processes wrote since, over one rotation at most. Undefined: more was rotated, a file was cut or removed, or
   * they are more than `mostBytes` in a file. Then the caller reopens.
   */
  readOn(mostBytes: number): readonly string[] | undefined {
    const known = this.#file;
    const rest = known?.readOn(mostBytes);
    if (known === undefined || rest === undefined) return undefined;
    if (inodeAt(this.#path) === known.inode) return rest;
    if (inodeAt(agedPath(this.#path, 1)) !== known.inode) return undefined;
    const next = this.reopen();
    return next.bytes > mostBytes ? undefined : [...rest, ...next.lines()];
  }

  append(line: string): void {
    const full = this.#rotation.maxBytes - Buffer.byteLength(line);
    if (this.#file !== undefined && this.#file.bytes > 0 && this.#file.bytes >= full) {
      this.#beforeRotation();
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

const inodeAt = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino;
