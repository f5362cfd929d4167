/** A sandbox's porter as the rest of Sallyport uses it: starts programs, finds those of an earlier host, and goes on with them. */

import type { Duplex } from 'node:stream';
import { deferred } from '../lib/deferred.ts';
import type { SallyportError } from '../protocol/errors.ts';
import type { OnQuestion } from './dns-questions.ts';
import { Exec, type ExecRequest, encodeExec, type Offsets } from './exec.ts';
import { Files } from './files.ts';
import { type Frame, frameType } from './frame.ts';
import type { PorterWelcome } from './greeting.ts';
import { type LinkOptions, PorterLink, type PorterNotice, violation } from './link.ts';
import { ListedCredit } from './listed-credit.ts';
import { type KnownListener, Listener, type OnConnection, requireHostStreams } from './listener.ts';
import type { OutputSink } from './output-sink.ts';
import { PayloadReader, PayloadWriter } from './payload.ts';
import type { SocketTarget, TcpTarget } from './socket-target.ts';
import type { ConnectOptions, Tunnel } from './tunnel.ts';
import { Tunnels } from './tunnels.ts';

export type ExecState = 'running' | 'exited' | 'lingering' | 'forgotten';

export interface KnownExec {
  readonly stream: number;
  readonly pid: number;
  /** `lingering`: it exited, and processes that it left behind still run. `forgotten`: the same, and its exit was recorded. */
  readonly state: ExecState;
  /** What porter still keeps of each channel: from the first byte that nobody acknowledged to the next that will come. */
  readonly stdout: { readonly first: number; readonly next: number };
  readonly stderr: { readonly first: number; readonly next: number };
  /** How many bytes of input arrived, and how many more may be sent now. */
  readonly inputBytes: number;
  readonly inputCredit: number;
  readonly ageMs: number;
}

export class Porter {
  readonly welcome: PorterWelcome;
  readonly files: Files;
  readonly #link: PorterLink;
  readonly #lists: Array<(list: readonly KnownExec[]) => void> = [];
  readonly #tunnels: Tunnels;
  readonly #listedCredit = new ListedCredit();
  #nextStream: number;

  private constructor(link: PorterLink, welcome: PorterWelcome) {
    this.#link = link;
    this.welcome = welcome;
    this.#nextStream = welcome.highestStream + 1;
    this.#tunnels = new Tunnels(link, welcome.inputWindow, () => this.reserveStream());
    link.onUnowned = (frame) => this.#onUnowned(frame);
    this.files = new Files({
      link,
      hasTreeLimits: welcome.hasTreeLimits,
      readsHoles: welcome.readsHoles,
      inputWindow: welcome.inputWindow,
      reserveStream: () => this.reserveStream(),
    });
  }

  static async open(stream: Duplex, options: LinkOptions): Promise<Porter> {
    const { link, welcome } = await PorterLink.open(stream, options);
    return new Porter(link, welcome);
  }

  get closed(): Promise<SallyportError> {
    return this.#link.closed;
  }

  /** Whether something is under way that would not outlive this connection: all but programs and listeners. */
  get transfers(): boolean {
    return this.#link.owners().some((owner) => !(owner instanceof Exec || owner instanceof Listener));
  }

  onNotice(listener: (notice: PorterNotice) => void): void {
    this.#link.onNotice = listener;
  }

  async ping(): Promise<void> {
    await this.#link.ping();
  }

  close(): void {
    this.#link.close();
  }

  /** A number for the next exec. Record it before the request is sent, and the request may be repeated after a crash. */
  reserveStream(): number {
    return this.#nextStream++;
  }

  /** A number that an earlier host has used is not given again, whatever the greeting said. */
  #keepClear(stream: number): void {
    this.#nextStream = Math.max(this.#nextStream, stream + 1);
  }

  /** Starts a program, or finds it if this number was asked for before. Throws `exec_invalid` for what no program can be given. */
  exec(request: ExecRequest, sink: OutputSink, stream: number = this.reserveStream()): Exec {
    const message = encodeExec(request);
    const { inputWindow } = this.welcome;
    const exec = new Exec(stream, this.#link, sink, {
      from: { stdout: 0, stderr: 0 },
      inputWindow,
      inputCredit: inputWindow,
    });
    if (this.#adopt(exec)) this.#link.sendLong(frameType.exec, stream, message);
    return exec;
  }

  /** Goes on with an exec of an earlier host: `from` is how much of each channel is safely stored. */
  resume(known: KnownExec, from: Offsets, sink: OutputSink): Exec {
    this.#keepClear(known.stream);
    const { inputWindow } = this.welcome;
    const exec = new Exec(known.stream, this.#link, sink, {
      from,
      inputWindow,
      inputCredit: Math.min(this.#listedCredit.of(known), inputWindow),
    });
    if (this.#adopt(exec)) {
      const payload = new PayloadWriter().u64(BigInt(from.stdout)).u64(BigInt(from.stderr)).end();
      this.#link.send(frameType.resume, known.stream, payload);
    }
    return exec;
  }

  /** Everything that runs, or ended and was not forgotten. */
  async list(): Promise<readonly KnownExec[]> {
    const answer = deferred<readonly KnownExec[]>();
    this.#lists.push(answer.resolve);
    this.#link.send(frameType.execs, 0);
    return await this.#link.answered(answer.promise);
  }

  /** A connection to something that listens inside. */
  async connect(target: SocketTarget, options: ConnectOptions = {}): Promise<Tunnel> {
    return await this.#tunnels.connect(target, options);
  }

  /** From now on whoever connects to this address inside is connected to `onConnection`. Port 0 is any that is free. */
  async listen(target: SocketTarget, onConnection: OnConnection): Promise<Listener> {
    return await this.#tunnels.listen(target, onConnection);
  }

  /** Answers DNS at this address inside, by UDP and TCP. */
  async listenDns(target: TcpTarget, onQuestion: OnQuestion): Promise<Listener> {
    return await this.#tunnels.listenDns(target, onQuestion);
  }

  /** All listeners, also those of an earlier host, which refuse everything until this was called. */
  async listeners(): Promise<readonly KnownListener[]> {
    return await this.#tunnels.list();
  }

  /** Goes on with a listener of an earlier host. */
  resumeListener(known: KnownListener, onConnection: OnConnection): Listener {
    this.#keepClear(known.stream);
    return this.#tunnels.resume(known, { onConnection });
  }

  resumeDns(known: KnownListener, onQuestion: OnQuestion): Listener {
    this.#keepClear(known.stream);
    return this.#tunnels.resume(known, { onQuestion });
  }

  #adopt(exec: Exec): boolean {
    this.#link.own(exec.stream, exec);
    return this.#link.failure === undefined;
  }

  #onUnowned(frame: Frame): void {
    // For input that arrived just when the program ended, or that an earlier host gave to an exec not resumed yet.
    if (frame.type === frameType.credit && frame.stream !== 0 && frame.stream < this.#nextStream) {
      this.#listedCredit.add(frame.stream, new PayloadReader(frame.payload).u32());
      return;
    }
    if (this.#tunnels.onUnowned(frame)) return;
    const waiting = frame.type === frameType.execList ? this.#lists.shift() : undefined;
    if (waiting === undefined) {
      throw violation(`frame ${frame.type} for stream ${frame.stream}, which is not open`);
    }
    const list = readList(new PayloadReader(frame.payload));
    this.#listedCredit.listed(list);
    waiting(list);
  }
}

const states: readonly ExecState[] = ['running', 'exited', 'lingering', 'forgotten'];

function readState(state: number): ExecState {
  const known = states[state - 1];
  if (known === undefined) throw violation(`an exec in state ${state}`);
  return known;
}

function readList(payload: PayloadReader): readonly KnownExec[] {
  const count = payload.u32();
  const list: KnownExec[] = [];
  for (let index = 0; index < count; index++) {
    list.push({
      stream: payload.u32(),
      pid: payload.u32(),
      state: readState(payload.u32()),
      stdout: { first: payload.u64(), next: payload.u64() },
      stderr: { first: payload.u64(), next: payload.u64() },
      inputBytes: payload.u64(),
      inputCredit: payload.u32(),
      ageMs: payload.u64(),
    });
  }
  payload.done();
  requireHostStreams(list);
  return list;
}
