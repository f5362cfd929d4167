/** One program inside the sandbox, as its host sees it. */

import { deferred } from '../lib/deferred.ts';
import { SallyportError } from '../protocol/errors.ts';
import { Batch } from './batch.ts';
import { frameType } from './frame.ts';
import { streamWindow } from './greeting.ts';
import { type PorterLink, type StreamOwner, violation } from './link.ts';
import type { Channel, OutputSink } from './output-sink.ts';
import { PayloadReader, PayloadWriter } from './payload.ts';

export interface ExecRequest {
  /** Program and arguments; a buffer for bytes that are not UTF-8. No shell is implied. */
  readonly argv: readonly [string | Buffer, ...Array<string | Buffer>];
  /** The whole environment: nothing else is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Without it the program reads end of file at once. */
  readonly stdin?: boolean;
  /** A terminal instead of pipes; then everything is stdout. */
  readonly pty?: { readonly rows: number; readonly columns: number };
  /** TERM to the whole tree at the deadline, KILL after the grace. Kept inside: it holds without this process. */
  readonly deadlineMs?: number;
  readonly graceMs?: number;
  /** For the whole tree; above it everything is killed. */
  readonly memoryLimitBytes?: number;
  readonly limits?: { readonly dataBytes?: number; readonly openFiles?: number; readonly fileBytes?: number };
}

export interface ExecResult {
  /** Absent when a signal ended the program. */
  readonly exitCode?: number;
  readonly signal?: number;
  readonly userCpuMicroseconds: number;
  readonly systemCpuMicroseconds: number;
  readonly maxRssBytes: number;
  /** A process that outlived the program still held its output open: there may have been more to come. */
  readonly outputIncomplete: boolean;
  readonly timedOut: boolean;
  readonly memoryLimitExceeded: boolean;
  readonly killed: boolean;
  /** The process that watched over it was killed from inside. */
  readonly supervisorLost: boolean;
  /** Processes that still ran when the program ended. */
  readonly leftBehind: number;
  readonly killedProcesses: number;
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
}

export interface Offsets {
  readonly stdout: number;
  readonly stderr: number;
}

const stdinStepBytes = 32 * 1024;

interface ChannelAccount {
  next: number;
  /** Everything below is in the sink for good. */
  stored: number;
  acknowledged: number;
  /** The write before. Sinks may finish out of order; what is acknowledged may not. */
  tail: Promise<void>;
}

export class Exec implements StreamOwner {
  readonly stream: number;
  /** Resolves with the pid inside once the program runs; rejects with `exec_start_failed`. */
  readonly started: Promise<number>;
  /** Resolves when the program is over and all of its output is in the sink. */
  readonly result: Promise<ExecResult>;
  /** Called when the program has taken more of its input. */
  onInputTaken: () => void = () => {};
  readonly #link: PorterLink;
  readonly #sink: OutputSink;
  readonly #started = deferred<number>();
  readonly #result = deferred<ExecResult>();
  readonly #channels: Record<Channel, ChannelAccount>;
  readonly #inputWindow: number;
  readonly #acks = new Batch(() => this.#acknowledge());
  #stdinCredit: number;
  #stdinSent = 0;
  #stdinWake: (() => void) | undefined;
  #stdinTail: Promise<void> = Promise.resolve();
  #over = false;
  /** The sink failed. */
  #lost = false;
  #exit: ExecResult | undefined;

  constructor(
    stream: number,
    link: PorterLink,
    sink: OutputSink,
    state: { readonly from: Offsets; readonly inputWindow: number; readonly inputCredit: number },
  ) {
    this.stream = stream;
    this.#link = link;
    this.#sink = sink;
    const account = (offset: number): ChannelAccount => ({
      next: offset,
      stored: offset,
      acknowledged: offset,
      tail: Promise.resolve(),
    });
    this.#channels = { stdout: account(state.from.stdout), stderr: account(state.from.stderr) };
    this.#inputWindow = state.inputWindow;
    this.#stdinCredit = state.inputCredit;
    this.started = this.#started.promise;
    this.result = this.#result.promise;
    // Whoever awaits only one of the two must not be killed by the rejection of the other.
    this.started.catch(() => {});
    this.result.catch(() => {});
  }

  /** How much of what was written here is beyond doubt with the program: it need not be kept to be sent again. */
  get inputTaken(): number {
    return Math.max(0, this.#stdinSent - (this.#inputWindow - this.#stdinCredit));
  }

  /** Whether all that came is in the sink. While it is not, porter may have to wait before it can say more. */
  get isStored(): boolean {
    const { stdout, stderr } = this.#channels;
    return stdout.stored === stdout.next && stderr.stored === stderr.next;
  }

  /** Resolves when the sandbox has taken the bytes; what a program that ended does not read is dropped. */
  async write(data: Buffer): Promise<void> {
    const sent = this.#stdinTail.then(() => this.#send(data));
    this.#stdinTail = sent;
    await sent;
  }

  async #send(data: Buffer): Promise<void> {
    for (let offset = 0; offset < data.length && !this.#over; ) {
      if (this.#stdinCredit === 0) {
        await new Promise<void>((resolve) => {
          this.#stdinWake = resolve;
        });
        continue;
      }
      if (!this.#link.hasRoom) {
        await this.#link.room();
        continue;
      }
      const part = data.subarray(offset, offset + Math.min(this.#stdinCredit, stdinStepBytes));
      this.#stdinCredit -= part.length;
      this.#stdinSent += part.length;
      offset += part.length;
      this.#link.send(frameType.stdin, this.stream, part);
    }
  }

  /** After all that was written. */
  endStdin(): void {
    this.#stdinTail = this.#stdinTail.then(() => {
      if (!this.#over) this.#link.send(frameType.stdin, this.stream);
    });
  }

  /** To the program's own process group. */
  signal(number: number): void {
    // Before the program runs there is nobody to signal.
    void this.started.then(
      () => {
        if (!this.#over)
          this.#link.send(frameType.signal, this.stream, new PayloadWriter().u32(number).end());
      },
      () => {},
    );
  }

  /** TERM to everything that the program started, KILL to what is left after the grace. `result` tells when all are dead. */
  kill(graceMs: number): void {
    this.#link.send(frameType.kill, this.stream, new PayloadWriter().u32(graceMs).end());
  }

  resize(rows: number, columns: number): void {
    if (!this.#over)
      this.#link.send(frameType.resize, this.stream, new PayloadWriter().u16(rows).u16(columns).end());
  }

  /** The exit is recorded: porter need not keep it any longer. */
  forget(): void {
    this.#link.sendByTheWay(frameType.forget, this.stream);
  }

  onFrame(type: number, bytes: Buffer): void {
    const payload = new PayloadReader(bytes);
    switch (type) {
      case frameType.started:
        this.#started.resolve(payload.u32());
        payload.done();
        return;
      case frameType.stdout:
        this.#onOutput('stdout', payload);
        return;
      case frameType.stderr:
        this.#onOutput('stderr', payload);
        return;
      case frameType.credit:
        this.#onStdinCredit(payload.u32());
        return;
      case frameType.exit:
        this.#onExit(payload);
        return;
      case frameType.notStarted:
        this.#onNotStarted(payload);
        return;
      default:
        throw violation(`unknown frame type ${type}`);
    }
  }

  fail(error: SallyportError): void {
    this.#finish();
    this.#sink.end(error);
    this.#started.reject(error);
    this.#result.reject(error);
  }

  #finish(): void {
    this.#over = true;
    this.#stdinWake?.();
  }

  #onStdinCredit(bytes: number): void {
    this.#stdinCredit = Math.min(this.#stdinCredit + bytes, this.#inputWindow);
    this.#stdinWake?.();
    this.#stdinWake = undefined;
    this.onInputTaken();
  }

  #onNotStarted(payload: PayloadReader): void {
    const errno = payload.u32();
    const reason = payload.text().slice(0, 200);
    this.#link.disown(this.stream);
    this.fail(new SallyportError('exec_start_failed', reason, { details: { errno } }));
  }

  #onOutput(channel: Channel, payload: PayloadReader): void {
    const account = this.#channels[channel];
    const offset = payload.u64();
    const data = payload.rest();
    if (this.#exit !== undefined || offset !== account.next || data.length === 0) {
      throw violation(`${channel} at ${offset} instead of ${account.next}`);
    }
    account.next += data.length;
    const { stdout, stderr } = this.#channels;
    if (stdout.next - stdout.acknowledged + stderr.next - stderr.acknowledged > streamWindow) {
      throw violation('more output than it had credit for');
    }
    this.#link.arrived(data.length);
    const end = account.next;
    const written = this.#lost ? Promise.resolve() : this.#sink.write(channel, offset, data);
    written.catch(() => {});
    account.tail = account.tail
      .then(() => written)
      .catch((cause: unknown) => this.#onLost(cause))
      .then(() => this.#onStored(account, end));
  }

  /** What still comes is thrown away and acknowledged all the same: it must not hold up the other streams. */
  #onLost(cause: unknown): void {
    if (this.#lost) return;
    this.#lost = true;
    this.fail(new SallyportError('output_lost', 'output of the sandbox could not be stored', { cause }));
    this.kill(0);
  }

  #onStored(account: ChannelAccount, end: number): void {
    this.#acks.add(end - account.stored);
    account.stored = end;
    this.#settle();
  }

  #acknowledge(): void {
    if (this.#link.failure !== undefined) return;
    const { stdout, stderr } = this.#channels;
    this.#link.gaveBack(stdout.stored - stdout.acknowledged + stderr.stored - stderr.acknowledged);
    stdout.acknowledged = stdout.stored;
    stderr.acknowledged = stderr.stored;
    this.#link.send(
      frameType.ack,
      this.stream,
      new PayloadWriter().u64(BigInt(stdout.stored)).u64(BigInt(stderr.stored)).end(),
    );
  }

  #onExit(payload: PayloadReader): void {
    const exit = readExit(payload);
    const { stdout, stderr } = this.#channels;
    if (this.#exit !== undefined || exit.stdoutBytes !== stdout.next || exit.stderrBytes !== stderr.next) {
      throw violation('an exit that does not fit the output');
    }
    this.#exit = exit;
    this.#finish();
    this.#settle();
  }

  /** Over only when everything that came is stored. */
  #settle(): void {
    const { stdout, stderr } = this.#channels;
    if (this.#exit === undefined || stdout.stored !== stdout.next || stderr.stored !== stderr.next) return;
    this.#acks.flush();
    this.#link.disown(this.stream);
    if (this.#lost) {
      this.forget();
      return;
    }
    this.#sink.end();
    this.#result.resolve(this.#exit);
  }
}

const lastSignal = 64;
const exitFlag = { incomplete: 1, timedOut: 2, memory: 4, killed: 8, supervisorLost: 16 };

function readExit(payload: PayloadReader): ExecResult {
  const signal = payload.u32();
  const exitCode = payload.u32();
  const userCpuMicroseconds = payload.u64();
  const systemCpuMicroseconds = payload.u64();
  const maxRssBytes = payload.u64();
  const flags = payload.u32();
  const leftBehind = payload.u32();
  const killedProcesses = payload.u32();
  const stdoutBytes = payload.u64();
  const stderrBytes = payload.u64();
  payload.done();
  // SECURITY: 128 and it become an exit code, which for 128 would be that of a success.
  if (signal > lastSignal) throw violation(`signal ${signal}`);
  return {
    ...(signal === 0 ? { exitCode: exitCode & 0xff } : { signal }),
    userCpuMicroseconds,
    systemCpuMicroseconds,
    maxRssBytes,
    outputIncomplete: (flags & exitFlag.incomplete) !== 0,
    timedOut: (flags & exitFlag.timedOut) !== 0,
    memoryLimitExceeded: (flags & exitFlag.memory) !== 0,
    killed: (flags & exitFlag.killed) !== 0,
    supervisorLost: (flags & exitFlag.supervisorLost) !== 0,
    leftBehind,
    killedProcesses,
    stdoutBytes,
    stderrBytes,
  };
}

const maxMessageBytes = 2 ** 20;

function invalid(reason: string): SallyportError {
  return new SallyportError('exec_invalid', `the program cannot be started like this: ${reason}`);
}

/** The kernel ends each of these at its first NUL. */
function checkStrings(what: string, values: ReadonlyArray<string | Buffer>): void {
  if (values.some((value) => value.includes('\0'))) throw invalid(`${what} contains a NUL`);
}

export function encodeExec(request: ExecRequest): Buffer {
  const { limits, argv, cwd } = request;
  const environment = Object.entries(request.env).map(([name, value]) => `${name}=${value}`);
  checkStrings('an argument', argv);
  checkStrings('the environment', environment);
  checkStrings('the working directory', [cwd]);
  const rows: ReadonlyArray<readonly [number, number | undefined]> = [
    [1, limits?.dataBytes],
    [2, limits?.openFiles],
    [3, limits?.fileBytes],
  ];
  const given = rows.filter((row): row is readonly [number, number] => row[1] !== undefined);
  const writer = new PayloadWriter()
    .u32((request.stdin === true ? 1 : 0) | (request.pty === undefined ? 0 : 2))
    .bytes(cwd)
    .list(argv)
    .list(environment)
    .u16(request.pty?.rows ?? 0)
    .u16(request.pty?.columns ?? 0)
    .u64(BigInt(Math.ceil(request.deadlineMs ?? 0)))
    // 0 would be porter's own default.
    .u32(request.graceMs === undefined ? 0 : Math.max(1, Math.ceil(request.graceMs)))
    .u64(BigInt(request.memoryLimitBytes ?? 0))
    .u32(given.length);
  for (const [resource, value] of given) writer.u32(resource).u64(BigInt(value));
  const message = writer.end();
  if (message.length > maxMessageBytes) {
    throw invalid(`arguments and environment take ${message.length} bytes of at most ${maxMessageBytes}`);
  }
  return message;
}
