/**
 * The framed stream to one porter: greeting, sending, and handing each frame that arrives to whoever owns its stream.
 *
 * It takes any duplex stream and knows no engine. It always reads. A violation by porter ends this link with a typed error
 * and nothing else.
 */

import type { Duplex } from 'node:stream';
import { deadline } from '../lib/deadline.ts';
import { type Deferred, deferred } from '../lib/deferred.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import { encodeFrame, type Frame, FrameDecoder, frameType, maxPayloadBytes } from './frame.ts';
import { connectionWindow, greeting, type PorterWelcome, readRefusal, readWelcome } from './greeting.ts';
import { LoopShare } from './loop-share.ts';
import { PayloadReader } from './payload.ts';
import { violation } from './violation.ts';

export { violation };

const nothing = Buffer.alloc(0);
/** porter keeps 256 execs that no host has let go of. */
const mostByTheWay = 32;
const momentMs = 20;
/** For what porter answers at once. It is longer than that only in a box that is paused, or does not want to. */
const answerMs = 20_000;
/** Input of all streams together waits until less than this is unsent. */
const roomBytes = 4 * 2 ** 20;
/**
 * SECURITY: a porter that makes the host answer and reads no answer would fill its memory. In pieces, because each costs some hundred
 * bytes whatever its length.
 */
const mostUnsentAnswers = 16_384;
/** Sent because of what porter sent. All are small but the answers to questions, of which few wait at a time. */
const answers: ReadonlySet<number> = new Set([
  frameType.credit,
  frameType.ack,
  frameType.reset,
  frameType.answer,
]);

export interface LinkOptions {
  /** Must be higher than that of any host before; `stale_epoch` in the refusal's details says how high. */
  readonly epoch: number;
  readonly token: Buffer;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Whoever has a stream open. `fail` is called once, when the link ends. */
export interface StreamOwner {
  onFrame(type: number, payload: Buffer): void;
  fail(error: SallyportError): void;
}

/** Kinds of notices: docs/protocol.md, section 3. */
export const noticeKind = { lenderWanted: 4 } as const;

export interface PorterNotice {
  readonly kind: number;
  readonly value: number;
  readonly text: string;
}

export class PorterLink {
  /** Resolves with the reason when the link has ended. */
  readonly closed: Promise<SallyportError>;
  onNotice: (notice: PorterNotice) => void = () => {};
  /** Frames of streams that porter opens itself, and of stream 0. */
  onUnowned: (frame: Frame) => void = (frame) => {
    throw violation(`frame ${frame.type} for stream ${frame.stream}, which is not open`);
  };
  readonly #stream: Duplex;
  readonly #epoch: number;
  readonly #decoder = new FrameDecoder();
  readonly #owners = new Map<number, StreamOwner>();
  readonly #welcome = deferred<PorterWelcome>();
  readonly #closed = deferred<SallyportError>();
  readonly #pings = new Map<number, Deferred<void>>();
  /** Arrived on any stream and not yet given back. */
  #underWay = 0;
  #unsentAnswers = 0;
  /** Wait until what was sent is on its way. */
  #forRoom: Array<() => void> = [];
  /** Encoded, for the next write. */
  #byTheWay: Buffer[] = [];
  #later: NodeJS.Timeout | undefined;
  #greeted = false;
  #nextPing = 0;
  #failure: SallyportError | undefined;
  readonly #share = new LoopShare();
  /** The rest of a chunk that took too long. */
  #paused: Iterator<Frame> | undefined;

  private constructor(stream: Duplex, epoch: number) {
    this.#stream = stream;
    this.#epoch = epoch;
    this.closed = this.#closed.promise;
    this.#welcome.promise.catch(() => {});
    stream.on('data', (chunk: Buffer) => this.#receive(this.#decoder.push(chunk)));
    stream.on('error', (error) => this.#end(gone(error)));
    stream.on('end', () => this.#end(gone()));
    stream.on('close', () => this.#end(gone()));
    stream.on('drain', () => this.#wakeForRoom());
  }

  static async open(
    stream: Duplex,
    options: LinkOptions,
  ): Promise<{ readonly link: PorterLink; readonly welcome: PorterWelcome }> {
    const link = new PorterLink(stream, options.epoch);
    const limit = deadline(options.timeoutMs, options.signal);
    limit.signal.addEventListener('abort', () => {
      link.fail(
        limit.expired()
          ? new SallyportError('porter_gone', `porter did not answer within ${options.timeoutMs} ms`)
          : new SallyportError('cancelled', 'connecting to the sandbox was cancelled'),
      );
    });
    link.send(frameType.hello, 0, greeting(options.token));
    try {
      return { link, welcome: await link.#welcome.promise };
    } finally {
      limit.dispose();
    }
  }

  get failure(): SallyportError | undefined {
    return this.#failure;
  }

  /** SECURITY: never in the place of another one, who would not hear of the end of the link. */
  own(stream: number, owner: StreamOwner): void {
    if (this.#owners.has(stream)) this.fail(violation(`stream ${stream} is in use`));
    if (this.#failure === undefined) this.#owners.set(stream, owner);
    else owner.fail(this.#failure);
  }

  owners(): readonly StreamOwner[] {
    return [...this.#owners.values()];
  }

  disown(stream: number): void {
    this.#owners.delete(stream);
  }

  send(type: number, stream: number, payload: Buffer = nothing): void {
    this.#write({ type, stream, payload, more: false });
  }

  /** For what nobody waits for: it goes with the next frame, or alone after a moment. Every write wakes five processes. */
  sendByTheWay(type: number, stream: number, payload: Buffer = nothing): void {
    if (this.#failure !== undefined) return;
    this.#byTheWay.push(encodeFrame({ type, epoch: this.#epoch, stream, payload, more: false }));
    if (this.#byTheWay.length >= mostByTheWay) this.#flush();
    else this.#later ??= setTimeout(() => this.#flush(), momentMs).unref();
  }

  /** A message that may need several frames. */
  sendLong(type: number, stream: number, message: Buffer): void {
    for (let offset = 0; offset === 0 || offset < message.length; offset += maxPayloadBytes) {
      const payload = message.subarray(offset, offset + maxPayloadBytes);
      const more = offset + maxPayloadBytes < message.length;
      this.#write({ type, stream, payload, more });
    }
  }

  /** Whether input may be sent: a porter that is paused, or does not read, gets no more for the moment. */
  get hasRoom(): boolean {
    return this.#stream.writableLength < roomBytes;
  }

  /** Called once, when there is room, or when the link has ended. */
  whenRoom(wake: () => void): void {
    if (this.#failure === undefined) this.#forRoom.push(wake);
    else wake();
  }

  async room(): Promise<void> {
    if (!this.hasRoom) await new Promise<void>((resolve) => this.whenRoom(resolve));
  }

  /** Data on any stream counts against one window of the whole connection. */
  arrived(bytes: number): void {
    this.#underWay += bytes;
    if (this.#underWay > connectionWindow) throw violation('more on all streams than it had credit for');
  }

  gaveBack(bytes: number): void {
    this.#underWay -= bytes;
  }

  /** Resolves when porter has answered; rejects when the link ends first. */
  async ping(): Promise<void> {
    const id = this.#nextPing++;
    const payload = Buffer.alloc(4);
    payload.writeUInt32LE(id >>> 0);
    if (this.#failure !== undefined) throw this.#failure;
    const answered = deferred<void>();
    this.#pings.set(id, answered);
    this.send(frameType.ping, 0, payload);
    await answered.promise;
  }

  /** SECURITY: of what a sandbox is asked on the way to a connection; a host that waited for ever could not stop it. */
  async answered<T>(answer: Promise<T>): Promise<T> {
    const limit = deadline(answerMs);
    limit.signal.addEventListener('abort', () =>
      this.fail(new SallyportError('porter_gone', `porter did not answer within ${answerMs} ms`)),
    );
    const failure = this.closed.then((error) => {
      throw error;
    });
    try {
      return await Promise.race([answer, failure]);
    } finally {
      limit.dispose();
    }
  }

  close(): void {
    this.#flush();
    this.fail(new SallyportError('porter_gone', 'the connection to the sandbox was closed'));
  }

  fail(error: SallyportError): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    clearTimeout(this.#later);
    this.#stream.destroy();
    this.#welcome.reject(error);
    for (const owner of [...this.#owners.values()]) owner.fail(error);
    this.#owners.clear();
    for (const { reject } of this.#pings.values()) reject(error);
    this.#pings.clear();
    this.#wakeForRoom();
    this.#closed.resolve(error);
  }

  #wakeForRoom(): void {
    const waiting = this.#forRoom;
    this.#forRoom = [];
    for (const wake of waiting) wake();
  }

  #write(frame: Omit<Frame, 'epoch'>): void {
    if (this.#failure !== undefined) return;
    const bytes = encodeFrame({ ...frame, epoch: this.#epoch });
    const isAnswer = answers.has(frame.type);
    if (this.#byTheWay.length > 0) this.#flush(bytes);
    else if (isAnswer) this.#writeAnswer(bytes);
    else this.#stream.write(bytes);
  }

  #writeAnswer(bytes: Buffer): void {
    this.#unsentAnswers++;
    this.#stream.write(bytes, () => {
      this.#unsentAnswers--;
    });
    if (this.#unsentAnswers > mostUnsentAnswers) this.fail(violation('it does not read what it is answered'));
  }

  #flush(...more: readonly Buffer[]): void {
    clearTimeout(this.#later);
    this.#later = undefined;
    const frames = [...this.#byTheWay, ...more];
    this.#byTheWay = [];
    // What goes by the way is an answer.
    if (this.#failure === undefined && frames.length > 0) this.#writeAnswer(Buffer.concat(frames));
  }

  /** Stops where its share of the loop is used up, and goes on when the others had their turn. */
  #receive(frames: Iterator<Frame>, isLast = false): void {
    this.#share.begin();
    try {
      while (this.#failure === undefined) {
        const { value, done } = frames.next();
        if (done === true) return;
        this.#dispatch(value);
        if (!isLast && this.#share.isUsedUp()) {
          this.#pause(frames);
          return;
        }
      }
    } catch (error) {
      this.fail(isSallyportError(error) ? error : violation('unreadable', error));
    }
  }

  /** The engine's stream is still read meanwhile; what comes waits in front of this link, and there is a bound to that. */
  #pause(frames: Iterator<Frame>): void {
    this.#paused = frames;
    this.#stream.pause();
    setImmediate(() => {
      if (this.#paused !== frames) return;
      this.#paused = undefined;
      this.#share.renew();
      this.#receive(frames);
      if (this.#paused === undefined) this.#stream.resume();
    });
  }

  /** Frames that arrived before the end count: a program's last output may be among them. */
  #end(error: SallyportError): void {
    const frames = this.#paused;
    this.#paused = undefined;
    if (frames !== undefined) this.#receive(frames, true);
    this.fail(error);
  }

  #dispatch(frame: Frame): void {
    if (frame.type < 0x80 && frame.type !== frameType.credit)
      throw violation(`frame ${frame.type} is the host's`);
    if (frame.more) throw violation('a long message');
    if (frame.type === frameType.refused) {
      throw this.#greeted
        ? violation('a refusal after the welcome')
        : readRefusal(new PayloadReader(frame.payload));
    }
    if (frame.epoch !== this.#epoch) throw violation(`epoch ${frame.epoch} instead of ${this.#epoch}`);
    if (!this.#greeted) {
      if (frame.type !== frameType.welcome) throw violation('no greeting');
      const welcome = readWelcome(new PayloadReader(frame.payload));
      this.#greeted = true;
      this.#welcome.resolve(welcome);
      return;
    }
    this.#deliver(frame);
  }

  #deliver(frame: Frame): void {
    switch (frame.type) {
      case frameType.superseded:
        throw new SallyportError('porter_superseded', 'another host has taken over this sandbox');
      case frameType.pong:
        this.#onPong(frame.payload);
        return;
      case frameType.notice:
        this.onNotice(readNotice(new PayloadReader(frame.payload)));
        return;
      default: {
        const owner = this.#owners.get(frame.stream);
        if (owner === undefined) this.onUnowned(frame);
        else owner.onFrame(frame.type, frame.payload);
      }
    }
  }

  #onPong(payload: Buffer): void {
    const id = new PayloadReader(payload).u32();
    const answered = this.#pings.get(id);
    if (answered === undefined) throw violation('an answer to no ping');
    this.#pings.delete(id);
    answered.resolve();
  }
}

function gone(cause?: Error): SallyportError {
  if (isSallyportError(cause)) return cause;
  return new SallyportError('porter_gone', 'the connection to the sandbox was lost', { cause });
}

const maxNoticeCharacters = 200;

function readNotice(payload: PayloadReader): PorterNotice {
  const notice = {
    kind: payload.u32(),
    value: payload.u32(),
    text: payload.text().slice(0, maxNoticeCharacters),
  };
  payload.done();
  return notice;
}
