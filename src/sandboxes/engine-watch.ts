/** Follows what the engine tells of our boxes, for as long as there is an engine, and begins anew when it is back. */

import type { BoxEvent } from './ports.ts';
import type { SandboxWorld } from './world.ts';

const retryMs = 1000;
const answerMs = 1000;

export interface WatchHost {
  readonly event: (event: BoxEvent) => void;
  /** The engine answers again: anything may have happened meanwhile. */
  readonly back: () => Promise<void>;
}

export class EngineWatch {
  readonly #world: SandboxWorld;
  readonly #host: WatchHost;
  readonly #abort = new AbortController();
  #reachable = false;

  constructor(world: SandboxWorld, host: WatchHost) {
    this.#world = world;
    this.#host = host;
  }

  get reachable(): boolean {
    return this.#reachable;
  }

  /** As of now: an engine that was away may be back since it was last asked. */
  async isReachable(): Promise<boolean> {
    return this.#reachable || (await this.#asks(AbortSignal.timeout(answerMs)));
  }

  /** Resolves when the engine was asked once, whatever it answered. */
  async start(): Promise<void> {
    this.#reachable = await this.#asks();
    void this.#follow();
  }

  stop(): void {
    this.#abort.abort();
  }

  #changed(reachable: boolean): void {
    if (this.#reachable === reachable || this.#abort.signal.aborted) return;
    this.#reachable = reachable;
    try {
      this.#world.store.events.append({ type: 'engine.reachable', reachable });
    } catch (error) {
      this.#world.report('tell of the engine', error);
    }
  }

  async #asks(limit?: AbortSignal): Promise<boolean> {
    const { signal } = this.#abort;
    try {
      await this.#world.engine.facts(limit === undefined ? signal : AbortSignal.any([signal, limit]));
      return true;
    } catch (error) {
      this.#world.report('ask the engine', error);
      return false;
    }
  }

  async #follow(): Promise<void> {
    const { signal } = this.#abort;
    while (!signal.aborted) {
      try {
        for await (const event of this.#world.engine.events(this.#world.owner, signal))
          this.#host.event(event);
      } catch (error) {
        if (!signal.aborted) this.#world.report('follow the engine', error);
      }
      this.#changed(false);
      await this.#untilBack();
    }
  }

  async #untilBack(): Promise<void> {
    const { signal } = this.#abort;
    while (!signal.aborted && !this.#reachable) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, retryMs);
        signal.addEventListener('abort', () => resolve(), { once: true });
        timer.unref();
      });
      if (!signal.aborted && (await this.#asks())) this.#changed(true);
    }
    if (!signal.aborted) await this.#host.back();
  }
}
