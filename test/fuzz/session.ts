/** One porter's hosts, one after the other: what each says next, with a damage here and there. */

import { encodeFrame, type Frame, frameType } from '../../src/porter/frame.ts';
import { greeting } from '../../src/porter/greeting.ts';
import { PayloadReader, PayloadWriter } from '../../src/porter/payload.ts';
import { ExecTalk } from './exec-talk.ts';
import { FileTalk } from './file-talk.ts';
import type { Random } from './random.ts';
import { type Said, StreamNumbers, type Talk } from './talk.ts';
import { TunnelTalk } from './tunnel-talk.ts';

export class Session {
  readonly #random: Random;
  readonly #token: Buffer;
  readonly #talks: readonly [Talk, ...Talk[]];
  #epoch = 0;
  #asked: { readonly epoch: number; readonly payload: Buffer } | undefined;
  /** What porter last took, and so what an honest host must come with. */
  accepted: { readonly epoch: number; readonly token: Buffer } | undefined;

  constructor(random: Random) {
    this.#random = random;
    this.#token = random.bytes(32);
    const numbers = new StreamNumbers();
    const all: readonly [Talk, Talk, Talk] = [
      new ExecTalk(random, numbers),
      new FileTalk(random, numbers),
      new TunnelTalk(random, numbers),
    ];
    // All at once, or one alone, which comes further.
    this.#talks = random.chance(2) ? all : [random.pick(all)];
  }

  /** Of the next host. Some come with another token, or too late. */
  hello(): Buffer {
    const random = this.#random;
    this.#epoch++;
    const token = random.chance(30) ? random.bytes(random.below(80)) : this.#token;
    const epoch = random.chance(30) ? random.number() : this.#epoch;
    const payload = random.chance(30) ? random.mutate(greeting(token)) : greeting(token);
    const bytes = encodeFrame({ type: frameType.hello, epoch, stream: 0, payload, more: false });
    this.#asked = { epoch, payload };
    return random.chance(30) ? random.mutate(bytes) : bytes;
  }

  ping(): Buffer {
    return this.#encode({ type: frameType.ping, stream: 0, payload: Buffer.alloc(4) });
  }

  /** Follows what porter sends; true for an answer to a ping. */
  heard(frame: Frame): boolean {
    if (frame.type === frameType.welcome && frame.epoch === this.#asked?.epoch) {
      this.accepted = { epoch: frame.epoch, token: tokenOf(this.#asked.payload) };
      for (const talk of this.#talks) talk.restart();
    }
    if (frame.epoch !== this.#epoch) return false;
    for (const talk of this.#talks) talk.hear(frame);
    return frame.type === frameType.pong;
  }

  frame(): Buffer {
    const random = this.#random;
    const said = random.chance(30) ? this.#wild() : random.pick(this.#talks).say();
    if (said === undefined) return this.ping();
    const payload = random.chance(300) ? random.mutate(said.payload).subarray(0, 65536) : said.payload;
    const bytes = this.#encode({
      ...said,
      payload,
      type: random.chance(500) ? random.below(256) : said.type,
      stream: random.chance(200) ? random.number() : said.stream,
    });
    return random.chance(500) ? random.mutate(bytes) : bytes;
  }

  #wild(): Said {
    const random = this.#random;
    // Wrong on purpose, and not a violation: what is told of things that are over, or were never there.
    const type = random.pick([frameType.credit, frameType.cancel, frameType.reset, frameType.answer]);
    const stream = random.chance(2) ? random.number() : random.below(60);
    const payload = type === frameType.cancel ? Buffer.alloc(0) : new PayloadWriter().u32(0).end();
    return { type, stream, payload };
  }

  #encode({ type, stream, payload, more = false }: Said): Buffer {
    const epoch = this.#random.chance(200) ? this.#random.number() : this.#epoch;
    return encodeFrame({ type, epoch, stream, payload, more });
  }
}

function tokenOf(hello: Buffer): Buffer {
  const payload = new PayloadReader(hello);
  payload.u16();
  payload.u16();
  payload.bigU64();
  payload.u32();
  payload.u32();
  return payload.bytes();
}
