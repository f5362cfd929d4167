/** When a sandbox has lived long enough: unused for its idle time, or older than its lifetime. */

import { formatDuration } from '../lib/durations.ts';
import type { SandboxRecord } from './records.ts';

export const defaultIdleMs = 30 * 60_000;
/** Of a clean-up run that a file operation started. */
const briefIdleMs = 30_000;
/** Node's timers overflow beyond; a longer wait is made of several. */
const longestTimerMs = 2 ** 31 - 1;

export interface LifeHost {
  /** Something runs or somebody is connected: that is no idleness. */
  readonly alive: () => boolean;
  readonly over: (why: string) => void;
}

export class LifeWatch {
  /** Asked anew each time: both times may be changed while it runs. */
  readonly #record: () => Pick<SandboxRecord, 'spec' | 'createdAt' | 'cleanUp'>;
  readonly #host: LifeHost;
  #usedMs = Date.now();
  #timer: NodeJS.Timeout | undefined;

  constructor(record: () => Pick<SandboxRecord, 'spec' | 'createdAt' | 'cleanUp'>, host: LifeHost) {
    this.#record = record;
    this.#host = host;
  }

  begin(): void {
    this.touch();
    this.#look();
  }

  touch(): void {
    this.#usedMs = Date.now();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    clearTimeout(this.#timer);
    if (this.#host.alive()) this.touch();
    const now = Date.now();
    const { idleMs, lifetimeMs, endMs } = this.#times();
    const idleEndMs = this.#usedMs + idleMs;
    if (now >= endMs) this.#over(`its lifetime of ${formatDuration(lifetimeMs)} is over`);
    else if (now >= idleEndMs) this.#over(`it was not used for ${formatDuration(idleMs)}`);
    else {
      const nextMs = Math.min(endMs, idleEndMs) - now;
      if (nextMs !== Number.POSITIVE_INFINITY) {
        this.#timer = setTimeout(() => this.#look(), Math.min(nextMs, longestTimerMs));
      }
    }
  }

  #times(): { readonly idleMs: number; readonly lifetimeMs: number; readonly endMs: number } {
    const { spec, createdAt, cleanUp } = this.#record();
    const { idle_ttl: idle = defaultIdleMs, max_lifetime: lifetime = 'never' } = spec;
    const lifetimeMs = typeof lifetime === 'number' ? lifetime : Number.POSITIVE_INFINITY;
    const specIdleMs = typeof idle === 'number' ? idle : Number.POSITIVE_INFINITY;
    const idleMs = cleanUp === 'brief' ? Math.min(specIdleMs, briefIdleMs) : specIdleMs;
    return { idleMs, lifetimeMs, endMs: Date.parse(createdAt) + lifetimeMs };
  }

  #over(why: string): void {
    this.end();
    this.#host.over(why);
  }
}
