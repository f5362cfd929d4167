/**
 * The images that were seen to keep what they promise, one id a line. A cache: what is lost is looked at again, so nothing
 * here fails, and a line of another version of the marker counts for nothing.
 */

import { appendFileSync, readFileSync } from 'node:fs';
import { fileMode } from './state-folder.ts';

/** Enough for every image of a machine; a longer file begins anew. */
const mostLines = 1000;

export class PassedImages {
  readonly #path: string;
  readonly #mark: string;
  readonly #ids = new Set<string>();

  /** `version` is that of the marker the images were looked at for. */
  constructor(path: string, version: number) {
    this.#path = path;
    this.#mark = ` v${version}`;
    const lines = read(path).split('\n');
    if (lines.length > mostLines) return;
    for (const line of lines) {
      if (line.endsWith(this.#mark)) this.#ids.add(line.slice(0, -this.#mark.length));
    }
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  add(id: string): void {
    if (this.#ids.has(id)) return;
    this.#ids.add(id);
    try {
      appendFileSync(this.#path, `${id}${this.#mark}\n`, { mode: fileMode });
    } catch {
      // Remembered by this process alone.
    }
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
