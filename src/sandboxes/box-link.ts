/**
 * The connection to one running box: made once by attach, and by relay when the box lives on or the connection was lost, until the box
 * ends.
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
const mostNonsense = 3;
/** A connection that was lost before this counts as a failed one: the next waits longer. */
const steadyMs = 10_000;
/** A stop does not wait longer for a move to a relay: the sandbox may never let it come to an end. */
const stayMs = 10_000;
/** Most boxes are over by then. */
const settleAfterMs = 1000;
const answerMs = 500;

export interface LinkHost {
  readonly boxId: string;
  readonly token: Buffer;
  /** A number above all that were used before, safely written down. */
  nextEpoch(): number;
  /** Every connection, also the first. What it does is part of connecting. */
  connected(porter: Porter): Promise<void>;
  /** For good: the box ended, or it broke the protocol. */
  lost(error: SallyportError): void;
  /** For what nobody waits for. */
  report(what: string, error: unknown): void;
}

export class BoxLink {
  readonly #engine: BoxEngine;
  readonly #host: LinkHost;
  #porter = deferred<Porter>();
  #current: Porter | undefined;
  #closed = false;
  /** Speaks by the stream that was attached. */
  #attached = false;
  #settling: NodeJS.Timeout | undefined;
  /** While it leaves the attached stream; never rejects. */
  #moving: Promise<void> | undefined;
  /** Has greeted, and is not the connection yet. */
  #opening: Porter | undefined;
  #openedMs = 0;
  /** Connections in a row that were lost at once. */
  #shortLived = 0;

  constructor(engine: BoxEngine, host: LinkHost) {
    this.#engine = engine;
    this.#host = host;
    this.#porter.promise.catch(() => {});
  }

  /** The connection, as soon as there is one. */
  async porter(): Promise<Porter> {
    return await this.#porter.promise;
  }

  /**
   * A connection that answered in time and is still the one. What moves to a relay at that moment is asked when it is there: on a
   * busy machine a move takes longer than an answer may, and it says nothing of the box.
   */
  async answering(withinMs: number): Promise<Porter | undefined> {
    const moving = this.#moving;
    const porter = await this.#answered(withinMs);
    const moved = moving ?? this.#moving;
    if (porter !== undefined || moved === undefined) return porter;
    await moved;
    return await this.#answered(withinMs);
  }

  async #answered(withinMs: number): Promise<Porter | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(resolve, withinMs, undefined);
    });
    const porter = await Promise.race([this.#asked().catch(() => undefined), late]);
    clearTimeout(timer);
    return porter;
  }

  /** A question that is cut off by a move is put again, to the next connection. */
  async #asked(): Promise<Porter> {
    for (let last: Porter | undefined; ; ) {
      const porter = await this.porter();
      const isAnswered = await porter.ping().then(
        () => true,
        () => false,
      );
      if (isAnswered && this.#current === porter) return porter;
      if (porter === last) throw new SallyportError('porter_gone', 'the sandbox does not answer');
      last = porter;
      // Whoever is told of the end of a connection has heard of it by then.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** It has a connection, or loses every one that it is given. */
  get isReached(): boolean {
    return this.#current !== undefined || this.#shortLived > 0;
  }

  /** The connection if there is one right now. */
  get current(): Porter | undefined {
    return this.#current;
  }

  /** By the stream that was attached before the box was started. */
  async greet(door: BoxDoor, signal?: AbortSignal): Promise<void> {
    try {
      await this.#open(door, this.#nextEpoch(door), signal);
      this.#attached = true;
    } catch (error) {
      throw withLastWords(error, door);
    }
  }

  /**
   * Leaves the attached stream for a relay, in a while. The engine writes to all who are attached under one lock: another client of it who
   * attaches and does not read would hold this connection, and the box's stop.
   */
  settle(): void {
    if (this.#closed || !this.#attached) return;
    this.#settling = setTimeout(() => {
      void this.#moveNow().catch((error: unknown) => {
        this.#host.report('leave the attached stream', error);
        this.settle();
      });
    }, settleAfterMs);
    this.#settling.unref();
  }

  /** The same at once, before any program runs: whoever connects to a listener during the move is refused. */
  async settleNow(): Promise<void> {
    if (!this.#closed && this.#attached) await this.#moveNow();
  }

  /** Resolves when the connection is one that stays as long as the box does, or will not be one soon. */
  async stay(): Promise<void> {
    clearTimeout(this.#settling);
    await Promise.race([this.#moving, later(stayMs)]);
    clearTimeout(this.#settling);
  }

  /** To a box that was just started and could not be attached to before: it may not listen yet. */
  async reach(signal?: AbortSignal): Promise<void> {
    let last: unknown = new SallyportError('porter_gone', 'the sandbox ended as it started');
    for (const pauseMs of reconnectPausesMs) {
      if (pauseMs > 0) await later(pauseMs);
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
    const epoch = this.#host.nextEpoch();
    await this.#open(await this.#engine.openRelay(this.#host.boxId, signal), epoch, signal);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#settling);
    this.#opening?.close();
    this.#current?.close();
    this.#current = undefined;
    this.#porter.reject(new SallyportError('porter_gone', 'the connection to the sandbox was closed'));
  }

  async #moveNow(): Promise<void> {
    const move = this.#move();
    const ended = move
      .catch(() => {})
      .finally(() => {
        if (this.#moving === ended) this.#moving = undefined;
      });
    this.#moving = ended;
    await move;
  }

  /** Commands go on with the new connection; a transfer would not, so none may be under way. */
  async #move(): Promise<void> {
    const door = await this.#engine.openRelay(this.#host.boxId);
    const before = this.#current;
    if (this.#closed || !this.#attached || before === undefined || before.transfers) {
      door.destroy();
      if (before?.transfers === true) this.settle();
      return;
    }
    const epoch = this.#nextEpoch(door);
    this.#forgetCurrent();
    // What was sent has arrived, unless somebody holds the stream already: then it arrived all the same, and only the answer did not.
    await Promise.race([before.ping().catch(() => {}), later(answerMs)]);
    before.close();
    try {
      await this.#open(door, epoch);
    } catch (error) {
      door.destroy();
      await this.#reconnect(asGone(error));
    }
  }

  /** Where it cannot be written down nobody greets, and a connection that is there stays. */
  #nextEpoch(door: BoxDoor): number {
    try {
      return this.#host.nextEpoch();
    } catch (error) {
      door.destroy();
      throw error;
    }
  }

  async #open(door: BoxDoor, epoch: number, signal?: AbortSignal): Promise<void> {
    const porter = await Porter.open(door, {
      epoch,
      token: this.#host.token,
      timeoutMs: helloTimeoutMs,
      ...(signal === undefined ? {} : { signal }),
    });
    const giveUp = (): void => porter.close();
    this.#opening = porter;
    signal?.addEventListener('abort', giveUp, { once: true });
    try {
      await this.#host.connected(porter);
    } catch (error) {
      porter.close();
      throw error;
    } finally {
      this.#opening = undefined;
      signal?.removeEventListener('abort', giveUp);
    }
    if (this.#closed) {
      porter.close();
      throw new SallyportError('porter_gone', 'the connection to the sandbox was closed');
    }
    this.#current = porter;
    this.#openedMs = performance.now();
    this.#porter.resolve(porter);
    void porter.closed.then((error) => this.#onClosed(porter, error));
  }

  #onClosed(porter: Porter, error: SallyportError): void {
    if (this.#closed || this.#current !== porter) return;
    this.#forgetCurrent();
    this.#shortLived = performance.now() - this.#openedMs < steadyMs ? this.#shortLived + 1 : 0;
    // No other host has the token: one that is said to have taken over is as good as a lost connection.
    if (error.code === 'porter_gone' || error.code === 'porter_superseded') void this.#reconnect(error);
    else this.#giveUp(error);
  }

  /** Whoever asks from now on waits for the next one. */
  #forgetCurrent(): void {
    this.#attached = false;
    this.#current = undefined;
    this.#porter = deferred<Porter>();
    this.#porter.promise.catch(() => {});
  }

  /** A lost stream says nothing of the box: it may run on. */
  async #reconnect(first: SallyportError): Promise<void> {
    let last = first;
    let nonsense = 0;
    for (const pauseMs of this.#pauses()) {
      if (pauseMs > 0) await later(pauseMs);
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
        last = asGone(error);
        // It may be the engine's words about a box that is just ending: if it is not, it is heard again.
        if (last.code === 'porter_protocol') nonsense++;
        if (last.code === 'porter_superseded' || nonsense === mostNonsense) break;
      }
    }
    this.#giveUp(last);
  }

  /** Longer where the sandbox takes connections and loses them again: each costs the engine a process. */
  #pauses(): readonly number[] {
    const last = reconnectPausesMs.length - 1;
    return reconnectPausesMs.map(
      (pauseMs, index) => reconnectPausesMs[Math.min(last, index + this.#shortLived)] ?? pauseMs,
    );
  }

  #giveUp(error: SallyportError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#porter.reject(error);
    this.#host.lost(error);
  }
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}

function asGone(error: unknown): SallyportError {
  return isSallyportError(error) ? error : new SallyportError('porter_gone', String(error), { cause: error });
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
