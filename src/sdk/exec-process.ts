/**
 * A command that runs: its output as it comes, its input, its end. It outlives the daemon: when the connection is lost it
 * is made again, with a new daemon if there must be one, from the byte at which it broke.
 */

import type { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { deferred } from '../lib/deferred.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { ExecResultView, ExecView } from '../protocol/views.ts';
import { ByteChannel } from './byte-channel.ts';
import { type DaemonClient, segment } from './client.ts';
import { CommandFailedError, type ExecOutcome, outcomeOf } from './outcome.ts';
import { StdinStream } from './stdin-stream.ts';
import type { ClientWebSocket } from './web-socket.ts';

const mostUnreadBytes = 1_048_576;
const patienceMs = 15_000;
const pauseMs = 50;

export interface ProcessOptions {
  readonly client: DaemonClient;
  readonly sandbox: string;
  readonly exec: string;
  /** The command waits for a slow reader; else the reader is told of a gap. */
  readonly hold: boolean;
  /** It was started here, so it ends with this object. */
  readonly owned: boolean;
  readonly stdin: boolean;
  /** Where to begin in its output; absent: at its beginning. */
  readonly from?: { readonly stdout: number; readonly stderr: number };
  readonly signal?: AbortSignal;
}

/** `performance` would load a module of its own for it. */
const monotonicMs = (): number => process.uptime() * 1000;

type Message =
  | { readonly type: 'hello'; readonly stdin_taken: number }
  | { readonly type: 'stdin_taken'; readonly bytes: number }
  | { readonly type: 'gap'; readonly channel: 'stdout' | 'stderr'; readonly bytes: number }
  | { readonly type: 'exit'; readonly exec: ExecView };

export class ExecProcess implements AsyncDisposable {
  readonly id: string;
  readonly stdout: ByteChannel;
  readonly stderr: ByteChannel;
  readonly #options: ProcessOptions;
  readonly #stdin = new StdinStream();
  readonly #over = deferred<ExecView>();
  readonly #offsets: { stdout: number; stderr: number };
  readonly #path: string;
  #socket: ClientWebSocket | undefined;
  #isKnown: boolean;
  #greeted = false;
  #isOver = false;
  #dropped = 0;
  #left = false;

  constructor(options: ProcessOptions) {
    this.#options = options;
    this.#isKnown = options.owned;
    this.#offsets = { stdout: 0, stderr: 0, ...options.from };
    this.id = options.exec;
    this.#path = `/v1/sandboxes/${segment(options.sandbox)}/execs/${segment(options.exec)}`;
    this.stdout = new ByteChannel(() => this.#balance());
    this.stderr = new ByteChannel(() => this.#balance());
    this.#over.promise.catch(() => {});
    const { signal } = options;
    const onAbort = (): void => void this.#abort();
    if (signal?.aborted === true) onAbort();
    else signal?.addEventListener('abort', onAbort, { once: true });
    void this.#over.promise.catch(() => {}).then(() => signal?.removeEventListener('abort', onAbort));
    void this.#run();
  }

  /** Only where it was asked for; end it, or a program that reads to the end waits for ever. */
  get stdin(): Writable {
    if (this.#options.stdin) return this.#stdin;
    throw new SallyportError('usage', `command ${this.id} was started without an input`, {
      advice: 'Start it with `stdin: true`.',
    });
  }

  /** Bytes that were no longer kept when this reader came to them. */
  get droppedBytes(): number {
    return this.#dropped;
  }

  /** Resolves when it is over. Output that nobody reads is thrown away meanwhile; the outcome has its head and tail. */
  async wait(options: { readonly check?: boolean } = {}): Promise<ExecOutcome> {
    this.stdout.discard();
    this.stderr.discard();
    await this.#over.promise;
    const outcome = outcomeOf(await this.#options.client.json<ExecResultView>('GET', `${this.#path}/wait`));
    if (options.check === true && outcome.exitCode !== 0) throw new CommandFailedError(outcome);
    return outcome;
  }

  /** How it ended, without its output: for whoever reads the channels. Rejects when the connection is given up. */
  async ended(): Promise<ExecView> {
    return await this.#over.promise;
  }

  /** TERM to everything that it started, KILL after the grace; resolves when all is dead. */
  async kill(graceMs = 5000): Promise<void> {
    await this.#post('kill', { grace_ms: graceMs });
  }

  /** To the main process alone. By name, as SIGINT. */
  async signal(name: string): Promise<void> {
    await this.#post('signal', { signal: name });
  }

  async resize(rows: number, columns: number): Promise<void> {
    await this.#post('resize', { rows, columns });
  }

  /** Lets go of it. A command in the foreground is killed by the daemon if no other client comes. */
  disconnect(): void {
    if (this.#isOver) return;
    this.#left = true;
    this.#finish(new SallyportError('cancelled', `the connection to command ${this.id} was given up`));
  }

  /** Ends what was started here, and only lets go of what was attached to. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#options.owned && !this.#isOver) await this.kill().catch(() => {});
    this.disconnect();
  }

  async #post(verb: string, body: object): Promise<void> {
    await this.#options.client.json('POST', `${this.#path}/${verb}`, { body });
  }

  async #abort(): Promise<void> {
    const { signal } = this.#options;
    this.#finish(
      new SallyportError('cancelled', `command ${this.id} was cancelled`, { cause: signal?.reason }),
    );
    await this.kill().catch(() => {});
  }

  /** Connection after connection, until it is over. */
  async #run(): Promise<void> {
    let lost = monotonicMs();
    while (!this.#isOver) {
      const before = this.#progress();
      try {
        await this.#converse();
      } catch (error) {
        if (isSallyportError(error) && error.code !== 'daemon_gone') {
          this.#finish(error);
          return;
        }
        if (this.#progress() !== before) lost = monotonicMs();
        if (monotonicMs() - lost > patienceMs) {
          this.#finish(error instanceof Error ? error : new Error(String(error)));
          return;
        }
      }
      if (!this.#isOver) await sleep(pauseMs);
    }
  }

  #progress(): number {
    return this.#offsets.stdout + this.#offsets.stderr + this.#dropped + (this.#greeted ? 1 : 0);
  }

  /** Resolves when it is over or the connection ended; rejects when there was none. */
  async #converse(): Promise<void> {
    const { client, hold } = this.#options;
    // Starts a daemon if there is none, and says in words what is wrong if this command cannot be found. Who has just
    // started the command knows both.
    if (this.#isKnown) this.#isKnown = false;
    else await client.json<ExecView>('GET', this.#path);
    if (this.#isOver) return;
    const socket = client.socket(`${this.#path}/stream`, { ...this.#offsets, hold });
    this.#socket = socket;
    const closed = deferred<void>();
    let failure: Error | undefined;
    socket.on('message', (data, isBinary) => this.#onMessage(socket, data, isBinary));
    socket.on('error', (error) => {
      failure = error;
    });
    socket.on('close', () => closed.resolve());
    await closed.promise;
    this.#stdin.disconnect();
    if (failure !== undefined && !this.#isOver) {
      throw new SallyportError('daemon_gone', `the connection to command ${this.id} was lost`, {
        cause: failure,
      });
    }
  }

  #onMessage(socket: ClientWebSocket, data: Buffer, isBinary: boolean): void {
    if (this.#isOver) return;
    if (isBinary) {
      const channel = data[0] === 1 ? 'stdout' : 'stderr';
      this.#offsets[channel] += data.length - 1;
      this[channel].push(data.subarray(1));
      this.#balance();
      return;
    }
    const message = JSON.parse(data.toString('utf8')) as Message;
    switch (message.type) {
      case 'hello':
        this.#onHello(socket, message.stdin_taken);
        return;
      case 'stdin_taken':
        this.#stdin.acknowledge(message.bytes);
        return;
      case 'gap':
        this.#offsets[message.channel] += message.bytes;
        this.#dropped += message.bytes;
        return;
      case 'exit':
        this.#finish(message.exec);
    }
  }

  #onHello(socket: ClientWebSocket, taken: number): void {
    if (!this.#greeted && !this.#options.owned) this.#stdin.beginAt(taken);
    this.#greeted = true;
    if (!this.#options.stdin) return;
    const line = {
      send: (data: Buffer) => socket.send(data),
      end: () => socket.send('{"type":"end_stdin"}'),
    };
    this.#stdin.connect(line, taken);
  }

  /** What is unread here holds up the connection, and so, by and by, the command. */
  #balance(): void {
    const socket = this.#socket;
    if (socket === undefined || !socket.isOpen) return;
    const tooMuch = this.stdout.bytes + this.stderr.bytes > mostUnreadBytes;
    if (tooMuch && !socket.isPaused) socket.pause();
    else if (!tooMuch && socket.isPaused) socket.resume();
  }

  #finish(how: ExecView | Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const failure = how instanceof Error ? how : undefined;
    this.stdout.end(failure);
    this.stderr.end(failure);
    this.#stdin.close();
    if (how instanceof Error) this.#over.reject(how);
    else this.#over.resolve(how);
    const socket = this.#socket;
    if (socket === undefined) return;
    if (failure === undefined && !this.#left) {
      if (socket.isPaused) socket.resume();
      socket.close();
    } else socket.terminate();
  }
}
