/** Files that lead a browser to a link. Only their owner can read them; a command line, which would do as well, everybody can. */

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { launchPage } from './preview-pages.ts';

export class LaunchFiles {
  readonly #folder: string;
  readonly #timers = new Map<string, NodeJS.Timeout>();

  /** What an earlier daemon left is of no use any more. */
  constructor(folder: string) {
    this.#folder = folder;
    rmSync(folder, { recursive: true, force: true });
  }

  /** Returns its path. It goes when the link does. */
  write(label: string, url: string, livesMs: number): string {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const path = this.#path(label);
    rmSync(path, { force: true });
    writeFileSync(path, launchPage(url), { mode: 0o600, flag: 'wx' });
    clearTimeout(this.#timers.get(label));
    this.#timers.set(label, setTimeout(() => this.remove(label), livesMs).unref());
    return path;
  }

  remove(label: string): void {
    clearTimeout(this.#timers.get(label));
    this.#timers.delete(label);
    rmSync(this.#path(label), { force: true });
  }

  #path(label: string): string {
    return join(this.#folder, `${label}.html`);
  }
}
