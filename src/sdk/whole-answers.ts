/**
 * Requests whose answers are wanted whole, on connections that are kept: the shortest way to the daemon. It understands what the
 * daemon's server says (HTTP/1.1, with a length or in chunks) and takes everything else for a connection that is lost.
 */

import { connect, type Socket } from 'node:net';
import { AnswerReader, type WholeAnswer } from './answer-reader.ts';
import { connectionLost, notReached } from './lost-connection.ts';
import { turnOfTheLoop } from './turn-of-the-loop.ts';

export interface WholeCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly signal?: AbortSignal;
  /** As soon as the head of the answer is there, which may be long before the rest. */
  readonly onHead?: (headers: ReadonlyMap<string, string>) => void;
}

const mostKept = 16;

export class WholeAnswers {
  readonly #socketPath: string;
  readonly #kept: Connection[] = [];
  #closed = false;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  async ask(call: WholeCall): Promise<WholeAnswer> {
    const { signal } = call;
    signal?.throwIfAborted();
    if (call.method !== 'GET') await turnOfTheLoop();
    const connection = this.#take() ?? (await Connection.open(this.#socketPath));
    const onAbort = (): void => connection.end();
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      if (signal?.aborted === true) connection.end();
      const answer = await connection.ask(call);
      this.#keep(connection);
      return answer;
    } catch (error) {
      connection.end();
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /** Lets go of the connections that are kept. */
  close(): void {
    this.#closed = true;
    for (const connection of this.#kept.splice(0)) connection.end();
  }

  #take(): Connection | undefined {
    for (;;) {
      const connection = this.#kept.pop();
      if (connection === undefined || connection.isUsable) {
        connection?.hold();
        return connection;
      }
    }
  }

  #keep(connection: Connection): void {
    if (!connection.isUsable) return;
    if (this.#closed || this.#kept.length >= mostKept) connection.end();
    else {
      connection.rest();
      this.#kept.push(connection);
    }
  }
}

class Connection {
  readonly #socket: Socket;
  #reader: AnswerReader | undefined;
  #settle: { resolve(answer: WholeAnswer): void; reject(error: Error): void } | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('it was closed')));
  }

  static async open(path: string): Promise<Connection> {
    return await new Promise((resolve, reject) => {
      const socket = connect({ path });
      const refuse = (error: NodeJS.ErrnoException): void => reject(notReached(error));
      socket.once('error', refuse);
      socket.once('connect', () => {
        socket.removeListener('error', refuse);
        resolve(new Connection(socket));
      });
    });
  }

  get isUsable(): boolean {
    return !this.#socket.destroyed && this.#socket.writable && this.#settle === undefined;
  }

  /** Only while it is used does it keep the process alive. */
  hold(): void {
    this.#socket.ref();
  }

  rest(): void {
    this.#socket.unref();
  }

  end(): void {
    this.#socket.destroy();
  }

  async ask({ method, path, headers, body, onHead }: WholeCall): Promise<WholeAnswer> {
    const lines = [`${method} ${path} HTTP/1.1`, 'host: localhost'];
    for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
    if (body !== undefined || method !== 'GET') lines.push(`content-length: ${body?.length ?? 0}`);
    const head = `${lines.join('\r\n')}\r\n\r\n`;
    return await new Promise((resolve, reject) => {
      this.#reader = new AnswerReader(onHead);
      this.#settle = { resolve, reject };
      if (this.#socket.destroyed) {
        this.#fail(new Error('it was closed'));
        return;
      }
      this.#socket.cork();
      this.#socket.write(head, 'latin1');
      if (body !== undefined && body.length > 0) this.#socket.write(body);
      this.#socket.uncork();
    });
  }

  #take(chunk: Buffer): void {
    const reader = this.#reader;
    const settle = this.#settle;
    // Nobody asked: whatever this is, it is no answer to the next question either.
    if (reader === undefined || settle === undefined) {
      this.end();
      return;
    }
    try {
      const answer = reader.add(chunk);
      if (answer === undefined) return;
      this.#reader = undefined;
      this.#settle = undefined;
      if (answer.isLast) this.end();
      settle.resolve(answer);
    } catch (error) {
      this.#fail(error as Error);
      this.end();
    }
  }

  #fail(cause: Error): void {
    const settle = this.#settle;
    this.#reader = undefined;
    this.#settle = undefined;
    settle?.reject(connectionLost(cause));
  }
}
