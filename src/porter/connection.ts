/**
 * The host's end of the door: greets porter, multiplexes execs over one stream, and keeps the accounts of credit.
 *
 * It takes any duplex stream and knows no engine. What comes from porter is hostile: a violation ends this connection
 * with a typed error and nothing else. Memory is bounded, because porter may never have more under way than the windows
 * allow, and one that does is cut off.
 */

import type { Duplex } from 'node:stream';
import { deadline } from '../lib/deadline.ts';
import { deferred } from '../lib/deferred.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import { Exec, type ExecRequest } from './exec.ts';
import { encodeFrame, type Frame, FrameDecoder, frameType, maxPayloadBytes } from './frame.ts';
import { PayloadReader, PayloadWriter } from './payload.ts';

const protocolMajor = 1;
const protocolMinor = 0;
const connectionWindow = 512 * 1024;
const streamWindow = 256 * 1024;
/** Credit is given back in steps of this size: often enough not to stall, rarely enough to cost nothing. */
const creditStep = 64 * 1024;

export interface PorterWelcome {
  readonly major: number;
  readonly minor: number;
  readonly buildId: string;
  readonly stdinWindow: number;
  readonly pid: number;
}

interface StreamAccount {
  readonly exec: Exec;
  underWay: number;
  ungranted: number;
}

export class PorterConnection {
  readonly closed: Promise<void>;
  readonly #stream: Duplex;
  readonly #decoder = new FrameDecoder();
  readonly #streams = new Map<number, StreamAccount>();
  readonly #welcome = deferred<PorterWelcome>();
  readonly #closed = deferred<void>();
  #nextStream = 1;
  #underWay = 0;
  #ungranted = 0;
  #failure: SallyportError | undefined;
  #stdinWindow = 0;

  private constructor(stream: Duplex) {
    this.#stream = stream;
    this.closed = this.#closed.promise;
    this.#welcome.promise.catch(() => {});
    stream.on('data', (chunk: Buffer) => this.#receive(chunk));
    stream.on('error', (error) => this.#fail(gone(error)));
    stream.on('close', () => this.#fail(gone()));
    stream.on('end', () => this.#fail(gone()));
  }

  static async open(
    stream: Duplex,
    options: { readonly timeoutMs: number; readonly signal?: AbortSignal },
  ): Promise<{ readonly connection: PorterConnection; readonly welcome: PorterWelcome }> {
    const connection = new PorterConnection(stream);
    const limit = deadline(options.timeoutMs, options.signal);
    limit.signal.addEventListener('abort', () => {
      connection.#fail(
        limit.expired()
          ? new SallyportError('porter_gone', `porter did not answer within ${options.timeoutMs} ms`)
          : new SallyportError('cancelled', 'connecting to the sandbox was cancelled'),
      );
    });
    connection.#send(
      frameType.hello,
      0,
      new PayloadWriter()
        .u16(protocolMajor)
        .u16(protocolMinor)
        .u64(0n)
        .u32(connectionWindow)
        .u32(streamWindow)
        .end(),
    );
    try {
      return { connection, welcome: await connection.#welcome.promise };
    } finally {
      limit.dispose();
    }
  }

  /** Starts a program. Both outputs must be read or discarded, or the exec stops at its window. */
  exec(request: ExecRequest): Exec {
    const payload = new PayloadWriter()
      .u32(request.stdin ? 1 : 0)
      .bytes(request.cwd)
      .list(request.argv)
      .list(Object.entries(request.env).map(([name, value]) => `${name}=${value}`))
      .end();
    const exec = new Exec(this.#nextStream++, {
      stdinWindow: this.#stdinWindow,
      taken: (stream, bytes) => this.#taken(stream, bytes),
      sendStdin: (stream, bytes) => this.#send(frameType.stdin, stream, bytes),
      sendSignal: (stream, signal) =>
        this.#send(frameType.signal, stream, new PayloadWriter().u32(signal).end()),
    });
    if (this.#failure !== undefined) exec.fail(this.#failure);
    else if (payload.length > maxPayloadBytes) {
      exec.fail(new SallyportError('usage', `arguments and environment exceed ${maxPayloadBytes} bytes`));
    } else {
      this.#streams.set(exec.stream, { exec, underWay: 0, ungranted: 0 });
      this.#send(frameType.exec, exec.stream, payload);
    }
    return exec;
  }

  close(): void {
    this.#fail(new SallyportError('porter_gone', 'the connection to the sandbox was closed'));
  }

  #send(type: number, stream: number, payload: Buffer): void {
    if (this.#failure === undefined) this.#stream.write(encodeFrame({ type, epoch: 1, stream, payload }));
  }

  #receive(chunk: Buffer): void {
    if (this.#failure !== undefined) return;
    try {
      for (const frame of this.#decoder.push(chunk)) this.#dispatch(frame);
    } catch (error) {
      this.#fail(isSallyportError(error) ? error : violation('unreadable', error));
    }
  }

  #dispatch(frame: Frame): void {
    switch (frame.type) {
      case frameType.welcome:
        this.#onWelcome(new PayloadReader(frame.payload));
        return;
      case frameType.refused:
        throw refusal(new PayloadReader(frame.payload));
      case frameType.stdout:
      case frameType.stderr:
        this.#onOutput(frame);
        return;
      default:
        this.#onExecFrame(frame);
    }
  }

  #onWelcome(payload: PayloadReader): void {
    if (this.#stdinWindow !== 0) throw violation('greeted twice');
    const major = payload.u16();
    const minor = payload.u16();
    payload.u64();
    const buildId = payload.text().slice(0, 64);
    payload.u32();
    this.#stdinWindow = payload.u32();
    if (major !== protocolMajor) throw versionError(major, minor);
    if (this.#stdinWindow === 0) throw violation('no window for input');
    this.#welcome.resolve({ major, minor, buildId, stdinWindow: this.#stdinWindow, pid: payload.u32() });
  }

  #account(frame: Frame): StreamAccount {
    const account = this.#streams.get(frame.stream);
    if (account === undefined) throw violation(`frame ${frame.type} for a stream that is not open`);
    return account;
  }

  #onOutput(frame: Frame): void {
    const account = this.#account(frame);
    const bytes = frame.payload.length;
    account.underWay += bytes;
    this.#underWay += bytes;
    if (account.underWay > streamWindow || this.#underWay > connectionWindow) {
      throw violation('more output than it had credit for');
    }
    const output = frame.type === frameType.stdout ? account.exec.stdout : account.exec.stderr;
    output.push(frame.payload);
  }

  #onExecFrame(frame: Frame): void {
    const { exec } = this.#account(frame);
    const payload = new PayloadReader(frame.payload);
    switch (frame.type) {
      case frameType.started:
        exec.onStarted(payload);
        return;
      case frameType.credit:
        exec.onStdinCredit(payload.u32());
        return;
      case frameType.exit:
        // Only then forgotten: if the message turns out to be malformed, the exec is still here to be failed.
        exec.onExit(payload);
        this.#streams.delete(frame.stream);
        return;
      case frameType.notStarted:
        exec.onNotStarted(payload);
        this.#streams.delete(frame.stream);
        return;
      default:
        throw violation(`unknown frame type ${frame.type}`);
    }
  }

  /** A reader took output: credit for the connection, and for the stream while it is still open. */
  #taken(stream: number, bytes: number): void {
    this.#underWay -= bytes;
    this.#ungranted += bytes;
    if (this.#ungranted >= creditStep) {
      this.#send(frameType.credit, 0, new PayloadWriter().u32(this.#ungranted).end());
      this.#ungranted = 0;
    }
    const account = this.#streams.get(stream);
    if (account === undefined) return;
    account.underWay -= bytes;
    account.ungranted += bytes;
    if (account.ungranted >= creditStep) {
      this.#send(frameType.credit, stream, new PayloadWriter().u32(account.ungranted).end());
      account.ungranted = 0;
    }
  }

  #fail(error: SallyportError): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#stream.destroy();
    this.#welcome.reject(error);
    for (const { exec } of this.#streams.values()) exec.fail(error);
    this.#streams.clear();
    this.#closed.resolve();
  }
}

function gone(cause?: Error): SallyportError {
  if (isSallyportError(cause)) return cause;
  return new SallyportError('porter_gone', 'the connection to the sandbox was lost', { cause });
}

function violation(reason: string, cause?: unknown): SallyportError {
  return new SallyportError('porter_protocol', `the sandbox broke the protocol: ${reason}`, { cause });
}

function versionError(major: number, minor: number): SallyportError {
  return new SallyportError(
    'porter_version',
    `the sandbox speaks porter protocol ${major}.${minor}, not ${protocolMajor}.x`,
  );
}

function refusal(payload: PayloadReader): SallyportError {
  const major = payload.u16();
  const minor = payload.u16();
  if (major !== protocolMajor) return versionError(major, minor);
  return new SallyportError(
    'porter_protocol',
    `porter refused the connection: ${payload.text().slice(0, 200)}`,
  );
}
