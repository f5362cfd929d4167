/**
 * The conversation with one exec over a WebSocket: its output as it comes, its input as it is taken.
 *
 * Both ends count bytes from the exec's beginning. A client that lost its connection, also because the daemon was killed,
 * comes back with the offsets it has, learns how much of its input arrived, and goes on from there. Nothing here grows with
 * what a slow client leaves unread: then the log is not read on.
 */

import type { RawData, WebSocket } from 'ws';
import { z } from 'zod';
import type { Channel } from '../porter/output-sink.ts';
import { killBody, resizeBody, signalBody } from '../protocol/requests.ts';
import { flag, whole } from './query.ts';
import { socketRoute } from './socket-route.ts';
import type { ExecSurface } from './surface.ts';

const mostUnsentBytes = 1_048_576;
const mostUntakenBytes = 1_048_576;
/** Of the 256 KiB that a client of ours sends ahead. */
const worthTellingBytes = 65_536;
const closeNormal = 1000;
const closeInvalid = 1008;

const messageSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('end_stdin') }),
  resizeBody.extend({ type: z.literal('resize') }),
  signalBody.extend({ type: z.literal('signal') }),
  killBody.extend({ type: z.literal('kill') }),
]);

interface StreamOptions {
  readonly stdout: number;
  readonly stderr: number;
  readonly hold: boolean;
}

export const execStreamRoute = socketRoute({
  path: '/v1/sandboxes/:sandbox/execs/:exec/stream',
  summary: 'Output and input of a command over a WebSocket, from given offsets on',
  query: {
    stdout: whole('How much of stdout the client has already.'),
    stderr: whole('How much of stderr the client has already.'),
    hold: flag('The command waits for this reader; else a reader that is too slow is told of a gap.', true),
  },
  open: async ({ params, query, sandbox }) => {
    const exec = sandbox.getExec(params['exec'] ?? '');
    const { stdout = 0, stderr = 0, hold } = query;
    return async (socket, signal) => {
      const release = exec.hold();
      try {
        await converse(exec, socket, { stdout, stderr, hold }, signal);
      } finally {
        release();
      }
    };
  },
});

async function converse(
  exec: ExecSurface,
  socket: WebSocket,
  options: StreamOptions,
  signal: AbortSignal,
): Promise<void> {
  const { stdout, stderr, hold } = options;
  const output = new SocketOutput(socket, signal);
  const log = await exec.log();
  await output.text({ type: 'hello', stdout, stderr, stdin_taken: exec.inputBytes });
  takeInput(exec, socket, output, signal);
  const pieces = log.read({ from: { stdout, stderr }, follow: true, hold, signal });
  exec.readerCame();
  for await (const piece of pieces) {
    if ('data' in piece) await output.data(piece.channel, piece.data);
    else await output.text({ type: 'gap', channel: piece.channel, bytes: piece.droppedBytes });
  }
  // The log also ends for a client that is gone.
  await Promise.race([exec.ended, aborted(signal)]);
  signal.throwIfAborted();
  await output.text({ type: 'exit', exec: exec.view() });
  socket.close(closeNormal);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Sends, and waits while too much is not yet on its way. */
class SocketOutput {
  readonly #socket: WebSocket;
  readonly #signal: AbortSignal;
  #unsent = 0;
  /** Output and word of the input wait side by side. */
  #waiting: (() => void)[] = [];

  constructor(socket: WebSocket, signal: AbortSignal) {
    this.#socket = socket;
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#wake(), { once: true });
  }

  async data(channel: Channel, data: Buffer): Promise<void> {
    const frame = Buffer.allocUnsafe(data.length + 1);
    frame[0] = channel === 'stdout' ? 1 : 2;
    data.copy(frame, 1);
    await this.#send(frame);
  }

  async text(message: object): Promise<void> {
    await this.#send(JSON.stringify(message));
  }

  async #send(frame: Buffer | string): Promise<void> {
    this.#signal.throwIfAborted();
    const bytes = frame.length;
    this.#unsent += bytes;
    this.#socket.send(frame, () => {
      this.#unsent -= bytes;
      if (this.#unsent <= mostUnsentBytes) this.#wake();
    });
    while (this.#unsent > mostUnsentBytes) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
      this.#signal.throwIfAborted();
    }
  }

  #wake(): void {
    for (const go of this.#waiting.splice(0)) go();
  }
}

/** Hands on what the client sends, in its order, and stops reading when the program does not take it. */
function takeInput(exec: ExecSurface, socket: WebSocket, output: SocketOutput, signal: AbortSignal): void {
  let tail: Promise<void> = Promise.resolve();
  let untaken = 0;
  let told = exec.inputBytes;
  const tell = async (atLeast: number): Promise<void> => {
    const bytes = exec.inputBytes;
    if (bytes - told < atLeast) return;
    told = bytes;
    await output.text({ type: 'stdin_taken', bytes });
  };
  // Also what is taken when all is written: a client that has sent as much as it may ahead waits for this word.
  const stop = exec.onInputTaken(() => void tell(worthTellingBytes).catch(() => {}));
  signal.addEventListener('abort', stop, { once: true });
  const refuse = (): void => socket.close(closeInvalid, 'not a message of this conversation');
  socket.on('message', (raw, isBinary) => {
    const data = toBuffer(raw);
    if (!isBinary) {
      const act = readMessage(exec, data);
      if (act === undefined) refuse();
      // The end of the input comes after the input; all else is for now.
      else if (act.inOrder) tail = tail.then(act.run);
      else if (!tryRun(act.run)) refuse();
      return;
    }
    untaken += data.length;
    if (untaken > mostUntakenBytes) socket.pause();
    tail = tail.then(async () => {
      await exec.write(data);
      untaken -= data.length;
      if (untaken <= mostUntakenBytes && socket.isPaused) socket.resume();
      await tell(1);
    });
    // A program that ended takes no input, and a client that left wants to hear nothing: neither is a failure.
    tail = tail.catch(() => {});
  });
}

function readMessage(
  exec: ExecSurface,
  data: Buffer,
): { readonly inOrder: boolean; readonly run: () => void } | undefined {
  const message = messageSchema.safeParse(parseJson(data)).data;
  switch (message?.type) {
    case undefined:
      return undefined;
    case 'end_stdin':
      return { inOrder: true, run: () => exec.endStdin() };
    case 'resize':
      return { inOrder: false, run: () => exec.resize(message.rows, message.columns) };
    case 'signal':
      return { inOrder: false, run: () => exec.signal(message.signal) };
    case 'kill':
      return { inOrder: false, run: () => void exec.kill(message.grace_ms).catch(() => {}) };
  }
}

/** A signal that does not exist is told by throwing; here nobody would catch it. */
function tryRun(act: () => void): boolean {
  try {
    act();
    return true;
  } catch {
    return false;
  }
}

function parseJson(data: Buffer): unknown {
  try {
    return JSON.parse(data.toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}

function toBuffer(raw: RawData): Buffer {
  if (Buffer.isBuffer(raw)) return raw;
  return Array.isArray(raw) ? Buffer.concat(raw) : Buffer.from(raw);
}
