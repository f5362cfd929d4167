/**
 * The ends of boxes, as their status files tell them: written by bubblewrap, so also of boxes that another daemon started. And
 * their disappearance, whoever removed their folders.
 */

import { existsSync, type FSWatcher, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BoxEvent } from '../../sandboxes/ports.ts';
import { readStatus } from './box-process.ts';

export class BoxEvents {
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #listeners = new Set<(event: BoxEvent) => void>();

  tell(event: BoxEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  /** Of a box that runs: its end is told once. */
  follow(boxId: string, statusFile: string): void {
    this.leave(boxId);
    const watcher = watch(statusFile, { persistent: false });
    this.#watchers.set(boxId, watcher);
    const look = async (): Promise<void> => {
      const { exitCode } = readStatus(await readFile(statusFile, 'utf8').catch(() => ''));
      if (exitCode === undefined || this.#watchers.get(boxId) !== watcher) return;
      this.leave(boxId);
      this.tell({ boxId, kind: 'ended', exitCode });
    };
    watcher.on('change', () => void look());
    watcher.on('error', () => this.leave(boxId));
    // It may have ended before anybody watched.
    void look();
  }

  leave(boxId: string): void {
    this.#watchers.get(boxId)?.close();
    this.#watchers.delete(boxId);
  }

  /** `folder`: where boxes are, which is there. */
  async *stream(folder: string, signal: AbortSignal): AsyncGenerator<BoxEvent> {
    const waiting: BoxEvent[] = [];
    let wake = (): void => {};
    const listener = (event: BoxEvent): void => {
      waiting.push(event);
      wake();
    };
    this.#listeners.add(listener);
    const removals = this.#watchRemovals(folder);
    const onAbort = (): void => wake();
    signal.addEventListener('abort', onAbort);
    try {
      while (!signal.aborted) {
        yield* waiting.splice(0);
        if (waiting.length > 0 || signal.aborted) continue;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      removals.close();
      this.#listeners.delete(listener);
      for (const id of [...this.#watchers.keys()]) this.leave(id);
    }
  }

  #watchRemovals(folder: string): FSWatcher {
    const watcher = watch(folder, { persistent: false });
    watcher.on('change', (_kind, name) => {
      if (typeof name !== 'string' || existsSync(join(folder, name))) return;
      this.leave(name);
      this.tell({ boxId: name, kind: 'removed' });
    });
    // Then a removal is noticed when the box is next used.
    watcher.on('error', () => watcher.close());
    return watcher;
  }
}
