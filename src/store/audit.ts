/** Every execution, how it ended and why it was run, as a line of JSON that no other part of the product reads (C7). */

import { join } from 'node:path';
import type { AuditLine } from '../sandboxes/ports.ts';
import { RotatingFile, type Rotation } from './rotating-file.ts';
import { provideFolder } from './state-folder.ts';

const rotation: Rotation = { maxBytes: 16 * 2 ** 20, keep: 8 };

export class AuditFile {
  readonly #file: RotatingFile;

  constructor(folder: string, limits: Rotation = rotation) {
    provideFolder(folder);
    this.#file = new RotatingFile(join(folder, 'audit.jsonl'), limits);
  }

  append(line: AuditLine): void {
    const { durationMs, ...rest } = line;
    this.#file.append(JSON.stringify({ at: new Date().toISOString(), ...rest, duration_ms: durationMs }));
  }

  close(): void {
    this.#file.close();
  }
}
