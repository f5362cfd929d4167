/**
 * The host's end of an attached container: a duplex stream of its stdin and stdout, with stderr on the side.
 *
 * It always reads. An attached client that stops reading wedges the container inside dockerd, so there is no
 * back-pressure here; the porter protocol bounds what may be under way by credit. A peer that sends more than
 * `maxUnreadBytes` ahead of the reader breaks that contract and loses the connection.
 */

import { Duplex } from 'node:stream';
import { SallyportError } from '../../../protocol/errors.ts';
import { Demultiplexer } from './demultiplex.ts';

const maxUnreadBytes = 4 * 2 ** 20;
const maxStderrBytes = 16 * 1024;

export class Door extends Duplex {
  readonly #socket: Duplex;
  readonly #demultiplexer: Demultiplexer;
  #stderr = Buffer.alloc(0);

  constructor(socket: Duplex) {
    super({ allowHalfOpen: true });
    this.#socket = socket;
    this.#demultiplexer = new Demultiplexer((name, payload) => {
      if (name === 'stdout') this.push(payload);
      else this.#stderr = Buffer.concat([this.#stderr, payload]).subarray(-maxStderrBytes);
    });
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('end', () => this.push(null));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
  }

  /** The last of what the container wrote to stderr: why porter died, if it did. */
  get stderrTail(): string {
    return this.#stderr.toString('utf8');
  }

  #take(chunk: Buffer): void {
    try {
      this.#demultiplexer.push(chunk);
    } catch (error) {
      this.destroy(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    if (this.readableLength > maxUnreadBytes) {
      this.destroy(
        new SallyportError('porter_protocol', `the sandbox sent more than ${maxUnreadBytes} unread bytes`),
      );
    }
  }

  override _read(): void {
    // Data is pushed as it comes; see the head of this file.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.#socket.write(chunk)) done();
    else this.#socket.once('drain', () => done());
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
