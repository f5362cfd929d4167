/**
 * The daemon's half of the thread that serves connections: starts it when the first sandbox with a way out comes, tells it of every sandbox,
 * and hands connections over. When the thread ends, by a failure or because it does not answer, all its connections are closed, and the next
 * one starts it again with the rules that hold then: meanwhile nothing leaves.
 */

import type { Duplex } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { type Deferred, deferred } from '../../lib/deferred.ts';
import { isSallyportError, SallyportError } from '../../protocol/errors.ts';
import type { EgressSpec } from '../../protocol/spec.ts';
import type { ConnectionAt, ConnectionParts, ConnectionServer } from '../box-connections.ts';
import type { ServedBox } from '../box-egress.ts';
import { KnownValues } from '../credentials/known-values.ts';
import { probeName } from '../preflight.ts';
import type { FromThread, OpenedBox, ToThread, WireError } from './messages.ts';
import { joinThread, type StreamMessage, ThreadStream } from './thread-stream.ts';

/** New rules that the thread did not take within this time hold all the same: it is ended, with its connections. */
const answerMs = 5000;
/** One that ends again and again is left alone for a while. */
const mostStarts = 3;
const startsWithinMs = 10_000;
/** Of the thread alone: the API goes on when a flood fills it. */
const mostHeapMegabytes = 512;

export interface GateThreadOptions {
  /** The built entry of the thread. */
  readonly entry: URL;
  /** What the entry makes the thread's own secrets and resolver of; plain data. */
  readonly data: unknown;
  readonly report: (what: string, error: unknown) => void;
}

interface Box {
  readonly parts: ConnectionParts;
  readonly served: ServedBox;
  opened: OpenedBox;
}

export class GateThread {
  readonly #options: GateThreadOptions;
  readonly #boxes = new Map<number, Box>();
  readonly #streams = new Map<number, { readonly stream: ThreadStream; readonly box: number }>();
  readonly #calls = new Map<number, Deferred<number>>();
  /** SECURITY: a thread that ends takes none of them with it, or a server could return them after that. */
  readonly #values = new KnownValues();
  #worker: Worker | undefined;
  /** When it was started lately. */
  #starts: readonly number[] = [];
  #isClosed = false;
  #next = 1;

  constructor(options: GateThreadOptions) {
    this.#options = options;
  }

  /** For `EgressGate`. */
  open(parts: ConnectionParts, served: ServedBox): ConnectionServer {
    const box = this.#next++;
    const { id, name } = served.client;
    const opened = { box, id, name, egress: parts.egress, keys: served.keys };
    this.#boxes.set(box, { parts, served, opened });
    if (this.#worker === undefined) this.#start();
    else this.#send({ kind: 'box', opened });
    return {
      serve: (tunnel, where) => this.#serve(box, tunnel, where),
      change: (egress) => this.#change(box, egress),
      probing: (work) => this.#probing(box, work),
      closeAll: () => this.#closeAll(box),
      end: () => this.#end(box),
    };
  }

  /** For good. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#worker?.terminate();
  }

  #serve(box: number, tunnel: Duplex, where: ConnectionAt): void {
    if (this.#worker === undefined && !this.#start()) {
      tunnel.destroy();
      return;
    }
    const number = this.#next++;
    const stream = new ThreadStream((message) => this.#sendOn(number, message));
    this.#streams.set(number, { stream, box });
    stream.once('close', () => this.#streams.delete(number));
    this.#send({ kind: 'connection', box, stream: number, where });
    joinThread(tunnel, stream);
  }

  async #change(number: number, egress: EgressSpec): Promise<number> {
    const box = this.#boxes.get(number);
    if (box === undefined) return 0;
    // First: a thread that is started from here on has the new rules. Secrets and upstream are those that the sandbox was made with.
    const { credentials, upstream, upstream_secret } = box.parts.egress;
    box.opened = { ...box.opened, egress: { ...egress, credentials, upstream, upstream_secret } };
    return await this.#call((call) => ({ kind: 'change', box: number, call, egress }));
  }

  async #probing<T>(box: number, work: (name: string) => Promise<T>): Promise<T> {
    const name = probeName();
    if (this.#worker === undefined) this.#start();
    await this.#call((call) => ({ kind: 'probe', box, call, name }));
    try {
      return await work(name);
    } finally {
      await this.#call((call) => ({ kind: 'probe', box, call }));
    }
  }

  #closeAll(box: number): void {
    this.#send({ kind: 'close-all', box });
    for (const each of [...this.#streams.values()]) if (each.box === box) each.stream.destroy();
  }

  #end(box: number): void {
    this.#closeAll(box);
    this.#boxes.delete(box);
    this.#send({ kind: 'end', box });
  }

  /** Resolves with how many connections it closed, also when that was all of them because the thread ended. */
  async #call(message: (call: number) => ToThread): Promise<number> {
    if (this.#worker === undefined) return 0;
    const call = this.#next++;
    const answer = deferred<number>();
    this.#calls.set(call, answer);
    const late = setTimeout(() => {
      this.#options.report(
        'change rules in the gate',
        new Error(`its thread did not answer within ${answerMs} ms`),
      );
      void this.#worker?.terminate();
    }, answerMs).unref();
    this.#send(message(call));
    try {
      return await answer.promise;
    } finally {
      clearTimeout(late);
      this.#calls.delete(call);
    }
  }

  /** False: it ended several times a moment ago, and is not started again yet. */
  #start(): boolean {
    const nowMs = performance.now();
    this.#starts = this.#starts.filter((ms) => nowMs - ms < startsWithinMs);
    if (this.#isClosed || this.#starts.length >= mostStarts) return false;
    this.#starts = [...this.#starts, nowMs];
    const { entry, data, report } = this.#options;
    const resourceLimits = { maxOldGenerationSizeMb: mostHeapMegabytes };
    const worker = new Worker(entry, { workerData: data, resourceLimits });
    this.#worker = worker;
    worker.unref();
    worker.on('message', (message: FromThread) => this.#receive(message));
    worker.on('error', (error) => report("serve connections in the gate's thread", error));
    worker.once('exit', () => this.#onExit(worker));
    for (const known of this.#values.all()) this.#send({ kind: 'value', known });
    for (const { opened } of this.#boxes.values()) this.#send({ kind: 'box', opened });
    return true;
  }

  #onExit(worker: Worker): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    const lost = [...this.#streams.values()];
    this.#streams.clear();
    for (const { stream } of lost) stream.lose();
    for (const { resolve } of this.#calls.values()) resolve(lost.length);
  }

  #receive(message: FromThread): void {
    switch (message.kind) {
      case 'value':
        this.#values.learn(message.known);
        return;
      case 'stream':
        this.#streams.get(message.stream)?.stream.receive(message.message);
        return;
      case 'answer':
        this.#calls.get(message.call)?.resolve(message.closed);
        return;
      case 'written':
        this.#boxes.get(message.box)?.parts.written(message.outcome);
        return;
      case 'note':
        this.#boxes.get(message.box)?.parts.note(message.code, message.message);
        return;
      case 'report':
        this.#boxes.get(message.box)?.parts.report(message.what, new Error(message.error));
        return;
      case 'tor':
        void this.#tor(message);
    }
  }

  async #tor({ box, call, withinMs }: Extract<FromThread, { kind: 'tor' }>): Promise<void> {
    try {
      const lease = this.#boxes.get(box)?.served.tor();
      if (lease === undefined) throw new SallyportError('tor_missing', 'this gate starts no Tor client');
      this.#send({ kind: 'tor', call, place: await lease.socks(withinMs) });
    } catch (error) {
      this.#send({ kind: 'tor', call, place: wireError(error) });
    }
  }

  #sendOn(stream: number, message: StreamMessage): void {
    this.#send({ kind: 'stream', stream, message });
  }

  #send(message: ToThread): void {
    const isData = message.kind === 'stream' && 'data' in message.message;
    this.#worker?.postMessage(message, isData ? [message.message.data.buffer] : []);
  }
}

function wireError(error: unknown): WireError {
  const shown = isSallyportError(error) ? error : new SallyportError('tor_failed', String(error));
  const { code, message, advice, details } = shown;
  return { error: { code, message, advice, details } };
}
