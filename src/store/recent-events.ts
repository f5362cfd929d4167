/** The last events, for readers that keep up: they need not read again from the disk what was just written. Bounded. */

import type { SallyEvent } from '../protocol/events.ts';

export interface RecentLimits {
  readonly events: number;
  readonly bytes: number;
}

const defaultLimits: RecentLimits = { events: 256, bytes: 256 * 1024 };

interface Kept {
  readonly event: SallyEvent;
  readonly bytes: number;
}

export class RecentEvents {
  readonly #limits: RecentLimits;
  readonly #kept = new Map<number, Kept>();
  #bytes = 0;

  constructor(limits: RecentLimits = defaultLimits) {
    this.#limits = limits;
  }

  /** The newest is always kept, however large it is. */
  add(event: SallyEvent, bytes: number): void {
    this.#kept.set(event.sequence, { event, bytes });
    this.#bytes += bytes;
    for (const [sequence, oldest] of this.#kept) {
      if (this.#kept.size <= this.#limits.events && this.#bytes <= this.#limits.bytes) return;
      if (this.#kept.size === 1) return;
      this.#kept.delete(sequence);
      this.#bytes -= oldest.bytes;
    }
  }

  get(sequence: number): SallyEvent | undefined {
    return this.#kept.get(sequence)?.event;
  }
}
