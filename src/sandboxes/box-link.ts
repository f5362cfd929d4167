/**
 * The connection to one running box: made once by attach, made again by relay whenever it is lost, until the box ends.
 *
 * Each connection is a new epoch, which is written down before it is used, so that no two hosts ever share one. Whoever
 * holds execs is told of every new connection, to go on with what it has.
 */

import { deferred } from '../lib/deferred.ts';
import { Porter } from '../porter/porter.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { BoxDoor, BoxEngine } from './ports.ts';

const helloTimeoutMs = 20_000;
const reconnectPausesMs = [0, 100, 500, 2000, 5000];

export interface LinkHost {
  readonly boxId: string;
  readonly token: Buffer;
  /** A number above all that were used before, safely written down. */
  nextEpoch(): number;
  /** Every connection, also the first. What it does is part of connecting. */
  connected(porter: Porter): Promise<void>;
  /** For good: the box ended, or it broke the protocol. */
  lost(error: SallyportError): void;
}

export class BoxLink {
  readonly #engine: BoxEngine;
  readonly #host: LinkHost;
  #porter = deferred<Porter>();
  #current: Porter | undefined;
  #closed = false;

  constructor(engine: BoxEngine, host: LinkHost) {
    this.#engine = engine;
    this.#host = host;
    this.#porter.promise.catch(() => {});
  }

  /** The connection, as soon as there is one. */
  async porter(): Promise<Porter> {
    return await this.#porter.promise;
  }

  /** The connection if there is one right now. */
  get current(): Porter | undefined {
    return this.#current;
  }

  /** By the stream that was attached before the box was started. */
  async greet(door: BoxDoor, signal?: AbortSignal): Promise<void> {
    try {
      await this.#open(door, signal);
    } catch (error) {
      throw withLastWords(error, door);
    }
  }

  /** To a box that was just started and could not be attached to before: it may not listen yet. */
  async reach(signal?: AbortSignal): Promise<void> {
    let last: unknown = new SallyportError('porter_gone', 'the sandbox ended as it started');
    for (const pauseMs of reconnectPausesMs) {
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
      signal?.throwIfAborted();
      const state = await this.#engine.find(this.#host.boxId);
      if (state?.running !== true) throw last;
      try {
        await this.connect(signal);
        return;
      } catch (error) {
        if (!isSallyportError(error) || error.code === 'porter_protocol') throw error;
        last = error;
      }
    }
    throw last;
  }

  /** To a box that runs already. */
  async connect(signal?: AbortSignal): Promise<void> {
    const door = await this.#engine.openRelay(this.#host.boxId, signal);
    await this.#open(door, signal);
  }

  close(): void {
    this.#closed = true;
    this.#current?.close();
    this.#current = undefined;
    this.#porter.reject(new SallyportError('porter_gone', 'the connection to the sandbox was closed'));
  }

  async #open(door: BoxDoor, signal: AbortSignal | undefined): Promise<void> {
    const porter = await this.#greetNewest(door, signal);
    await this.#host.connected(porter);
    if (this.#closed) {
      porter.close();
      throw new SallyportError('porter_gone', 'the connection to the sandbox was closed');
    }
    this.#current = porter;
    this.#porter.resolve(porter);
    void porter.closed.then((error) => this.#onClosed(porter, error));
  }

  async #greetNewest(door: BoxDoor, signal: AbortSignal | undefined): Promise<Porter> {
    return await Porter.open(door, {
      epoch: this.#host.nextEpoch(),
      token: this.#host.token,
      timeoutMs: helloTimeoutMs,
      ...(signal === undefined ? {} : { signal }),
    });
  }

  #onClosed(porter: Porter, error: SallyportError): void {
    if (this.#closed || this.#current !== porter) return;
    this.#current = undefined;
    this.#porter = deferred<Porter>();
    this.#porter.promise.catch(() => {});
    if (error.code === 'porter_gone') void this.#reconnect(error);
    else this.#giveUp(error);
  }

  /** A lost stream says nothing of the box: it may run on. */
  async #reconnect(first: SallyportError): Promise<void> {
    let last = first;
    for (const pauseMs of reconnectPausesMs) {
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
      if (this.#closed) return;
      try {
        const state = await this.#engine.find(this.#host.boxId);
        if (state === undefined || !state.running) {
          this.#giveUp(ended(state?.oomKilled === true, first));
          return;
        }
        await this.connect();
        return;
      } catch (error) {
        last = isSallyportError(error)
          ? error
          : new SallyportError('porter_gone', String(error), { cause: error });
        if (last.code === 'porter_protocol' || last.code === 'porter_superseded') break;
      }
    }
    this.#giveUp(last);
  }

  #giveUp(error: SallyportError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#porter.reject(error);
    this.#host.lost(error);
  }
}

function ended(outOfMemory: boolean, cause: SallyportError): SallyportError {
  const why = outOfMemory ? ': it ran out of memory' : '';
  return new SallyportError('porter_gone', `the sandbox ended${why}`, { cause });
}

/** A lost connection says little; porter's last words say more. */
function withLastWords(error: unknown, door: BoxDoor): unknown {
  const words = door.stderrTail.trim();
  if (!isSallyportError(error, 'porter_gone') || words === '') return error;
  return new SallyportError('porter_gone', `${error.message}: ${words}`, { cause: error });
}
