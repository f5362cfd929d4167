/** The latest events in memory, so that a reader who keeps up needs no look at the disk. Bounded in number and in bytes. */

import type { SallyEvent } from '../protocol/events.ts';

const mostEvents = 256;

interface Kept {
  readonly event: SallyEvent;
  readonly bytes: number;
}

export class RecentEvents {
  /** In the order of their numbers, without a hole. */
  readonly #kept: Kept[] = [];
  readonly #mostBytes: number;
  #bytes = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** `bytes` is the size of its line. */
  add(event: SallyEvent, bytes: number): void {
    if (this.#kept.at(-1)?.event.sequence !== event.sequence - 1) this.#clear();
    this.#kept.push({ event, bytes });
    this.#bytes += bytes;
    while (this.#kept.length > mostEvents || this.#bytes > this.#mostBytes) {
      this.#bytes -= this.#kept.shift()?.bytes ?? 0;
    }
  }

  find(sequence: number): SallyEvent | undefined {
    const [first] = this.#kept;
    return first === undefined ? undefined : this.#kept[sequence - first.event.sequence]?.event;
  }

  #clear(): void {
    this.#kept.length = 0;
    this.#bytes = 0;
  }
}
