/** What the parts of a fuzzed session have in common: each says what a host might say next of its kind, and follows the answers. */

import type { Frame } from '../../src/porter/frame.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';
import type { Random } from './random.ts';

export interface Said {
  readonly type: number;
  readonly stream: number;
  readonly payload: Buffer;
  readonly more?: boolean;
}

export interface Talk {
  /** Most of it is right, because what is plainly wrong is refused before it reaches much. */
  say(): Said | undefined;
  /** Another host takes over: what does not outlive the one before is over. */
  restart(): void;
  hear(frame: Frame): void;
}

export class StreamNumbers {
  #last = 0;

  next(): number {
    return ++this.#last;
  }
}

/** What arrived on each stream and was not given back: giving back more is a violation, and teaches nothing. */
export class Ledger {
  readonly #random: Random;
  readonly #bytes = new Map<number, number>();

  constructor(random: Random) {
    this.#random = random;
  }

  arrived(stream: number, bytes: number): void {
    this.#bytes.set(stream, (this.#bytes.get(stream) ?? 0) + bytes);
  }

  close(stream: number): void {
    this.#bytes.delete(stream);
  }

  clear(): void {
    this.#bytes.clear();
  }

  /** How much of one of these streams to give back. */
  take(): { readonly stream: number; readonly payload: Buffer } | undefined {
    const [stream, bytes] = anyOf(this.#random, [...this.#bytes]) ?? [];
    if (stream === undefined || bytes === undefined || bytes === 0) return undefined;
    const back = this.#random.chance(2) ? bytes : 1 + this.#random.below(bytes);
    this.#bytes.set(stream, bytes - back);
    const wild = this.#random.chance(400) ? this.#random.number() : back;
    return { stream, payload: new PayloadWriter().u32(wild).end() };
  }
}

export function anyOf<T>(random: Random, items: readonly T[]): T | undefined {
  return items.length === 0 ? undefined : items[random.below(items.length)];
}
