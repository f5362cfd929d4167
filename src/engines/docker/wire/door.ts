/**
 * The host's end of an attached container: a duplex stream of its stdin and stdout, with stderr on the side.
 *
 * It always reads. An attached client that stops reading wedges the container inside dockerd, so there is no
 * back-pressure here; the porter protocol bounds what may be under way by credit. A peer that sends more than
 * `maxUnreadBytes` ahead of the reader breaks that contract and loses the connection.
 *
 * What was received is handed out before the end or the failure of the connection is: a program's last words are the
 * ones that matter.
 */

import { Duplex } from 'node:stream';
import { SallyportError } from '../../../protocol/errors.ts';
import { Demultiplexer } from './demultiplex.ts';
import { connectionError } from './errors.ts';

const maxUnreadBytes = 4 * 2 ** 20;
/** Each piece costs some hundred bytes of memory whatever its length; a peer that writes single bytes must not win by that. */
const maxUnreadPieces = 65_536;
const maxStderrBytes = 16 * 1024;
/** Below this it is cheaper to put pieces together than to hand on each. */
const worthwhileBytes = 4 * 1024;

export class Door extends Duplex {
  readonly #socket: Duplex;
  readonly #demultiplexer: Demultiplexer;
  #payloads: Buffer[] = [];
  #unreadPieces = 0;
  #stderr = Buffer.alloc(0);
  #failure: Error | undefined;

  constructor(socket: Duplex, endpoint = 'the engine') {
    // Not half open: with its output ended the container is gone, and there is nobody to write to.
    super({ allowHalfOpen: false });
    this.#socket = socket;
    this.#demultiplexer = new Demultiplexer((name, payload) => {
      if (name === 'stdout') this.#payloads.push(payload);
      else this.#stderr = Buffer.concat([this.#stderr, payload]).subarray(-maxStderrBytes);
    });
    // A failure before anybody listens must not end the process; it is kept, and met by whoever reads.
    this.on('error', () => {});
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('end', () => this.#end(endpoint));
    socket.on('error', (error) => this.#fail(connectionError(endpoint, error)));
    socket.on('close', () => this.#end(endpoint));
  }

  /** The last of what the container wrote to stderr: why porter died, if it did. */
  get stderrTail(): string {
    return this.#stderr.toString('utf8');
  }

  #take(chunk: Buffer): void {
    let broken: Error | undefined;
    try {
      this.#demultiplexer.push(chunk);
    } catch (error) {
      broken = error instanceof Error ? error : new Error(String(error));
    }
    const payloads = this.#payloads;
    this.#payloads = [];
    for (const piece of worthwhilePieces(payloads)) {
      this.#unreadPieces = this.readableLength === 0 ? 1 : this.#unreadPieces + 1;
      this.push(piece);
    }
    if (broken !== undefined) this.#fail(broken);
    else if (this.readableLength > maxUnreadBytes || this.#unreadPieces > maxUnreadPieces) {
      const limits = `${maxUnreadBytes} bytes or ${maxUnreadPieces} pieces`;
      this.destroy(
        new SallyportError('porter_protocol', `the sandbox sent more than ${limits} ahead of its reader`),
      );
    }
  }

  #end(endpoint: string): void {
    if (this.readableEnded || this.destroyed || this.#failure !== undefined) return;
    if (this.#demultiplexer.atBoundary) this.push(null);
    else
      this.#fail(
        connectionError(endpoint, new Error('the attached stream broke off in the middle of a frame')),
      );
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#socket.destroy();
    if (this.readableLength === 0) this.destroy(error);
  }

  override read(size?: number): Buffer | null {
    const chunk = super.read(size) as Buffer | null;
    const failure = this.#failure;
    // Later, because what was just taken is delivered only after this returns.
    if (failure !== undefined && this.readableLength === 0) process.nextTick(() => this.destroy(failure));
    return chunk;
  }

  override _read(): void {
    // Data is pushed as it comes; see the head of this file.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    // A write that fails is no news of its own: the socket's error, or its end, says what happened.
    this.#socket.write(chunk, () => done());
  }

  override _final(done: () => void): void {
    // Half-closing an attach detaches it from the container, output included.
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}

function worthwhilePieces(payloads: readonly Buffer[]): readonly Buffer[] {
  const bytes = payloads.reduce((sum, { length }) => sum + length, 0);
  return payloads.length < 2 || bytes >= payloads.length * worthwhileBytes
    ? payloads
    : [Buffer.concat(payloads, bytes)];
}
