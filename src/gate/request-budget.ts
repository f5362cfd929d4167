/**
 * How much work the requests of one sandbox may make: how many there are, also at once, how many HTTP/2 streams a client resets, how many
 * bytes are unpacked to be searched. Requests and bytes above the budget wait for their turn, so a program is slowed down and never fails by
 * it; HTTP/2 streams that would make the queue too long are refused, and may be opened again. Resets are no use to anybody: above the budget every HTTP/2 connection of the sandbox is closed, and for a while the gate offers HTTP/1.1 alone.
 */

import { Allowance, type Rate } from '../lib/allowance.ts';
import { Slots } from '../lib/slots.ts';
import { overBudget } from './entrance-budget.ts';
import { MessageRoom } from './http/message-room.ts';
import type { RareNotes } from './rare-notes.ts';

const requests: Rate = { burst: 2048, perSecond: 512 };
const resets: Rate = { burst: 256, perSecond: 32 };
/** PING and SETTINGS of HTTP/2: each is answered. */
const controls: Rate = { burst: 1024, perSecond: 256 };
const unpackedBytes: Rate = { burst: 64 * 2 ** 20, perSecond: 32 * 2 ** 20 };
/** Each has a connection of this machine. One of HTTP/2 carries many, so the limit of connections does not bound them. */
const atOnce: AtOnce = { served: 512, waiting: 1536 };
/** Of a mebibyte each at most. */
const mostHeld = 16;
const calmMs = 10_000;

interface AtOnce {
  readonly served: number;
  readonly waiting: number;
}

export class RequestBudget {
  readonly messages = new MessageRoom();
  readonly #notes: RareNotes;
  readonly #atOnce: AtOnce;
  readonly #served: Slots;
  #inside = 0;
  readonly #requests = new Allowance(requests);
  readonly #resets = new Allowance(resets);
  readonly #controls = new Allowance(controls);
  readonly #unpacked = new Allowance(unpackedBytes);
  readonly #held = new Slots(mostHeld);
  readonly #unpacking = new Slots(1);
  readonly #http2 = new Set<() => void>();
  #calmUntilMs = 0;

  constructor(notes: RareNotes, most: AtOnce = atOnce) {
    this.#notes = notes;
    this.#atOnce = most;
    this.#served = new Slots(most.served);
  }

  /** True: no more are taken in. */
  get isFull(): boolean {
    return this.#inside >= this.#atOnce.served + this.#atOnce.waiting;
  }

  /** Resolves when the request may be served, or nobody waits for it any more; the result is called when it is over. */
  async enter(gone?: AbortSignal): Promise<() => void> {
    this.#inside++;
    await this.request(gone);
    if (this.#inside > this.#atOnce.served)
      this.#notes.note(
        overBudget,
        `more than ${this.#atOnce.served} requests at once: the gate delays the others`,
      );
    const leave = await this.#served.take(gone).catch(() => () => {});
    let isInside = true;
    return () => {
      leave();
      if (isInside) this.#inside--;
      isInside = false;
    };
  }

  /** True: HTTP/2 is not offered. */
  get isCalmed(): boolean {
    return performance.now() < this.#calmUntilMs;
  }

  /** Resolves when it is this request's turn, or nobody waits for it any more. */
  async request(gone?: AbortSignal): Promise<void> {
    const waitMs = this.#requests.reserve();
    if (waitMs === 0) return;
    this.#notes.note(overBudget, `more than ${requests.perSecond} requests a second: the gate delays them`);
    await pause(waitMs, gone);
  }

  /** A packed body is held until it was searched. Resolves when there is room; the result gives the room back. */
  async hold(gone?: AbortSignal): Promise<() => void> {
    const leave = await this.#held.take(gone);
    gone?.addEventListener('abort', leave, { once: true });
    return leave;
  }

  /** One body at a time: each takes a thread of the few that the whole process has. */
  async unpack<T>(work: () => Promise<T>, gone?: AbortSignal): Promise<T> {
    const leave = await this.#unpacking.take(gone);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  /** Resolves when more may be unpacked. */
  async unpacked(bytes: number, gone?: AbortSignal): Promise<void> {
    const waitMs = this.#unpacked.reserve(bytes);
    if (waitMs === 0) return;
    const megabytes = unpackedBytes.perSecond / 2 ** 20;
    this.#notes.note(
      overBudget,
      `bodies unpack to more than ${megabytes} MiB a second: the gate delays them`,
    );
    await pause(waitMs, gone);
  }

  /** An HTTP/2 connection; `close` is called when the sandbox resets too many streams. Returns how to leave. */
  http2(close: () => void): () => void {
    this.#http2.add(close);
    return () => void this.#http2.delete(close);
  }

  /** A client gave up a stream before it was answered. */
  reset(): void {
    if (!this.#resets.take()) this.#calm(`more than ${resets.perSecond} HTTP/2 streams reset a second`);
  }

  /** A client sent a frame that is no part of a request, and has its answer. */
  control(): void {
    if (!this.#controls.take()) this.#calm(`more than ${controls.perSecond} HTTP/2 control frames a second`);
  }

  #calm(why: string): void {
    this.#calmUntilMs = performance.now() + calmMs;
    const closed = [...this.#http2];
    this.#http2.clear();
    for (const close of closed) close();
    const seconds = calmMs / 1000;
    this.#notes.note(overBudget, `${why}: the gate closes HTTP/2 for ${seconds} s`);
  }
}

function pause(ms: number, gone?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      gone?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    if (gone?.aborted === true) done();
    else gone?.addEventListener('abort', done, { once: true });
  });
}
