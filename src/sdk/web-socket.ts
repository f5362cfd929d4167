/**
 * The client's half of a WebSocket (RFC 6455) on the daemon's Unix socket: whole messages both ways, pause and resume.
 *
 * It is here because a library for the whole web loads TLS, HTTPS and zlib before the first byte, which is longer than
 * most commands take. It knows no extension and no subprotocol, and believes nothing that it did not ask for.
 */

import { EventEmitter } from 'node:events';
import { type ClientRequest, request } from 'node:http';
import type { Socket } from 'node:net';
import { noServerName } from './transport.ts';
import { FrameReader, frameOf, opcode } from './web-socket-frames.ts';

export interface WebSocketOptions {
  readonly socketPath: string;
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly mostMessageBytes: number;
}

interface Events {
  message: [data: Buffer, isBinary: boolean];
  error: [error: Error];
  close: [];
}

/**
 * Of no use here, and so the same each time: with the answer to it and with the mask of each frame the protocol protects
 * browsers and caches on the way, and a Unix socket has neither.
 */
const key = 'c2FsbHlwb3J0LXNvY2tldA==';
const closeNormal = 1000;

export class ClientWebSocket extends EventEmitter<Events> {
  readonly #request: ClientRequest;
  readonly #reader: FrameReader;
  #socket: Socket | undefined;
  #paused = false;
  #isClosing = false;
  #isOver = false;

  constructor(options: WebSocketOptions) {
    super();
    const { socketPath, path, headers, mostMessageBytes } = options;
    this.#reader = new FrameReader(mostMessageBytes);
    this.#request = request({
      socketPath,
      ...noServerName,
      path,
      headers: {
        host: 'localhost',
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': key,
        ...headers,
      },
    });
    this.#request.once('upgrade', (_answer, socket, head) => this.#opened(socket as Socket, head));
    this.#request.once('response', (answer) => {
      answer.resume();
      this.#end(new Error(`the daemon answered with status ${answer.statusCode}`));
    });
    this.#request.once('error', (error) => this.#end(error));
    this.#request.end();
  }

  get isOpen(): boolean {
    return this.#socket !== undefined && !this.#isClosing && !this.#isOver;
  }

  get isPaused(): boolean {
    return this.#paused;
  }

  /** No message comes until `resume`; what is under way holds up the sender. */
  pause(): void {
    this.#paused = true;
    this.#socket?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#deliver();
    if (!this.#paused) this.#socket?.resume();
  }

  /** Text for a string, binary for bytes. What is sent when it is not open is lost: `close` says that it ended. */
  send(data: Buffer | string): void {
    if (!this.isOpen) return;
    const isText = typeof data === 'string';
    this.#socket?.write(frameOf(isText ? opcode.text : opcode.binary, isText ? Buffer.from(data) : data));
  }

  close(): void {
    if (this.#isOver) return;
    if (this.#socket === undefined) this.terminate();
    else this.#sendClose(closeNormal);
  }

  /** Ends it without a word. */
  terminate(): void {
    this.#end();
  }

  #opened(socket: Socket, head: Buffer): void {
    this.#socket = socket;
    if (this.#isOver) {
      socket.destroy();
      return;
    }
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.#received(chunk));
    socket.on('error', (error) => this.#end(error));
    socket.on('close', () => this.#end());
    if (head.length > 0) this.#received(head);
    if (this.#paused) socket.pause();
  }

  #received(chunk: Buffer): void {
    this.#reader.push(chunk);
    this.#deliver();
  }

  #deliver(): void {
    try {
      while (!this.#paused && !this.#isOver) {
        const message = this.#reader.next();
        if (message === undefined) return;
        this.#onMessage(message.opcode, message.data);
      }
    } catch (error) {
      this.#end(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #onMessage(kind: number, data: Buffer): void {
    switch (kind) {
      case opcode.text:
      case opcode.binary:
        this.emit('message', data, kind === opcode.binary);
        return;
      case opcode.ping:
        if (this.isOpen) this.#socket?.write(frameOf(opcode.pong, data));
        return;
      case opcode.close:
        this.#sendClose(data.length >= 2 ? data.readUInt16BE(0) : closeNormal);
        this.#socket?.end();
    }
  }

  #sendClose(code: number): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    const body = Buffer.alloc(2);
    body.writeUInt16BE(code, 0);
    this.#socket?.write(frameOf(opcode.close, body));
  }

  #end(error?: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#request.destroy();
    this.#socket?.destroy();
    // Not in the caller's own call: whoever made it has had no chance to listen.
    process.nextTick(() => {
      if (error !== undefined) this.emit('error', error);
      this.emit('close');
    });
  }
}
