/**
 * One command in a sandbox, from its first record to its last, over as many connections as it takes.
 *
 * Its output goes to its log and is acknowledged only there; so a daemon that dies loses nothing of it. A foreground
 * command belongs to a client: when none has been there for a while it is killed.
 */

import { deferred } from '../lib/deferred.ts';
import { signalNumber } from '../lib/signals.ts';
import type { Exec, ExecRequest, ExecResult } from '../porter/exec.ts';
import type { OutputSink } from '../porter/output-sink.ts';
import type { KnownExec, Porter } from '../porter/porter.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { ExecId } from '../protocol/ids.ts';
import type { ExecResultView, ExecView } from '../protocol/views.ts';
import { capturedView, captureLimitBytes } from './captured-output.ts';
import { describeEnd, endedEvent, failure, notStarted } from './exec-ending.ts';
import { execView } from './exec-view.ts';
import { InputRelay } from './input-relay.ts';
import { Overdue } from './overdue.ts';
import type { AuditLine, ExecLog, SandboxStore } from './ports.ts';
import { Presence } from './presence.ts';
import type { ExecRecord } from './records.ts';

const graceMs = 5000;
/** Signals and sizes that wait for a connection. */
const mostUntold = 64;

export interface ExecWorld {
  readonly store: SandboxStore;
  readonly now: () => string;
  readonly checkpoint: (name: string) => void;
  readonly clientAbsenceMs: number;
  /** A command that did not end in time has this long besides. */
  readonly overduePatienceMs: number;
  /** Whether the sandbox could say now that a command ended. */
  readonly isActive: () => boolean;
  /** SECURITY: the sandbox does not obey, so what runs in it can only be ended from outside. */
  readonly overdue: (error: SallyportError) => void;
  /** Whether the kernel has killed something in this sandbox for want of memory since this was last asked. */
  readonly ranOutOfMemory: () => Promise<boolean>;
  /** For the audit: the sandbox, its image and its isolation. */
  readonly where: string;
  readonly sandboxName: string;
  readonly changed: (exec: BoxExec) => void;
  /** For what nobody waits for and nobody can be told. */
  readonly report: (what: string, error: unknown) => void;
}

export class BoxExec {
  readonly #world: ExecWorld;
  readonly #known = deferred<ExecRecord>();
  readonly #ended = deferred<void>();
  readonly #input = new InputRelay();
  readonly #presence: Presence;
  readonly #overdue: Overdue;
  #record: ExecRecord;
  #exec: Exec | undefined;
  #log: Promise<ExecLog> | undefined;
  #lastWrite: Promise<void> = Promise.resolve();
  #startedMs = performance.now();
  #finishing = false;
  /** What is done about its end on the present connection. */
  #over: Promise<void> = Promise.resolve();
  /** A reader is expected, for whom everything is kept. */
  #expecting: AbortController | undefined;
  /** Somebody wants it dead: said again on every new connection. */
  #killAfterMs: number | undefined;
  readonly #untold: Array<(exec: Exec) => void> = [];

  constructor(world: ExecWorld, record: ExecRecord) {
    this.#world = world;
    this.#record = record;
    this.#presence = new Presence(world.clientAbsenceMs, () => {
      if (!this.#record.background) void this.kill(graceMs);
    });
    this.#overdue = new Overdue({
      // A reader that does not read holds up the word of its end as well.
      isActive: () => world.isActive() && this.#exec?.isStored !== false,
      patienceMs: world.overduePatienceMs,
      onOverdue: () =>
        world.overdue(
          new SallyportError('porter_protocol', `the sandbox did not end ${record.argv[0] ?? ''} in time`),
        ),
    });
    if (record.state === 'running') return;
    this.#known.resolve(record);
    this.#ended.resolve();
  }

  get id(): ExecId {
    return this.#record.id;
  }

  get stream(): number {
    return this.#record.stream;
  }

  get isMain(): boolean {
    return this.#record.main;
  }

  get running(): boolean {
    return this.#record.state === 'running';
  }

  get inputBytes(): number {
    return this.#input.taken;
  }

  /** Whenever the program has taken more of its input; returns how to stop that. */
  onInputTaken(listener: () => void): () => void {
    return this.#input.onTaken(listener);
  }

  /** Resolves when it is known how it ended, which is a moment before it is written down. */
  get known(): Promise<unknown> {
    return this.#known.promise;
  }

  /** Resolves when it is over, however it ended: `view` says how. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  view(): ExecView {
    return execView(this.#record);
  }

  /** Recorded, audited, announced, and only then sent: what the audit cannot take, because the disk is full, does not run. */
  begin(porter: Porter, request: ExecRequest): void {
    const { store, checkpoint } = this.#world;
    store.saveExec(this.#record);
    checkpoint('exec.recorded');
    this.#audit({ outcome: 'started' });
    store.events.append({
      type: 'exec.started',
      sandbox_id: this.#record.sandboxId,
      exec_id: this.id,
      argv: [...this.#record.argv],
      background: this.#record.background,
    });
    const exec = porter.exec(request, this.#sink(), this.stream);
    this.#allow();
    checkpoint('exec.sent');
    this.#input.begin(exec);
    this.#follow(exec);
    if (!this.#record.background) this.#presence.watch();
  }

  /** Goes on with it on a new connection. */
  async resume(porter: Porter, known: KnownExec): Promise<void> {
    const log = await this.log();
    // What is accepted and not stored comes once more, and is known by its place. It is not waited for: a reader that does not
    // read may hold it up, and with it everybody who waits for this connection.
    const { stdout, stderr } = log.stored;
    const exec = porter.resume(known, { stdout, stderr }, this.#sink());
    this.#allow();
    this.#input.resume(exec, known.inputBytes);
    this.#follow(exec);
    for (const what of this.#untold.splice(0)) what(exec);
    if (this.#killAfterMs !== undefined) exec.kill(this.#killAfterMs);
    if (this.#record.background) return;
    this.#presence.watch();
    // Who is there reads already, and does so at his own pace.
    if (!this.held) await this.expectReader();
  }

  /** Nothing of its output is let go of before its reader is there: one that is slow to come is as good as a slow one. */
  async expectReader(): Promise<void> {
    const log = await this.log();
    if (!this.running || this.#expecting !== undefined) return;
    const expecting = new AbortController();
    this.#expecting = expecting;
    log.read({ follow: true, hold: true, signal: expecting.signal });
    // Whoever has not come by then is gone, and the command with him.
    const late = setTimeout(() => this.readerCame(), this.#world.clientAbsenceMs);
    expecting.signal.addEventListener('abort', () => clearTimeout(late), { once: true });
  }

  /** He reads by himself now, or does not want to. */
  readerCame(): void {
    this.#expecting?.abort();
    this.#expecting = undefined;
  }

  /** The sandbox knows nothing of it any more, or never did. */
  async lose(error: SallyportError): Promise<void> {
    if (!this.running) return;
    if (this.#finishing) return await this.#over;
    this.#finishing = true;
    this.readerCame();
    await this.#lastWrite;
    await this.#conclude({ state: 'lost', ...failure(error) }, error.message);
  }

  #allow(): void {
    const { endsWithinMs } = this.#record;
    if (endsWithinMs !== undefined) this.#overdue.allow(endsWithinMs);
  }

  async log(): Promise<ExecLog> {
    this.#log ??= this.#openLog();
    try {
      return await this.#log;
    } catch (error) {
      // The next one tries again.
      this.#log = undefined;
      throw error;
    }
  }

  async result(): Promise<ExecResultView> {
    await this.ended;
    return await this.knownResult();
  }

  /** For one who asks from another process: what he does next comes after it was written down. */
  async knownResult(): Promise<ExecResultView> {
    const record = await this.#known.promise;
    const log = await this.log();
    const [stdout, stderr, output] = await Promise.all([
      log.capture('stdout', captureLimitBytes),
      log.capture('stderr', captureLimitBytes),
      log.capture('output', captureLimitBytes),
    ]);
    return {
      exec: execView(record),
      stdout: capturedView(stdout),
      stderr: capturedView(stderr),
      output: capturedView(output),
    };
  }

  async write(data: Buffer): Promise<void> {
    if (this.running) await this.#input.write(data);
  }

  endStdin(): void {
    this.#input.end();
  }

  signal(name: string): void {
    const number = signalNumber(name);
    if (number === undefined) {
      throw new SallyportError('usage', `${JSON.stringify(name)} is no signal`, {
        advice: 'Use a name such as SIGINT, SIGTERM or SIGKILL.',
      });
    }
    this.#tell((exec) => exec.signal(number));
  }

  resize(rows: number, columns: number): void {
    this.#tell((exec) => exec.resize(rows, columns));
  }

  /** At once, or as soon as there is a connection again. */
  #tell(what: (exec: Exec) => void): void {
    if (!this.running) return;
    if (this.#exec !== undefined) what(this.#exec);
    else if (this.#untold.length < mostUntold) this.#untold.push(what);
  }

  /** Resolves when everything that it started is dead. */
  async kill(afterMs: number): Promise<void> {
    if (!this.running) return;
    this.#killAfterMs = afterMs;
    this.#exec?.kill(afterMs);
    this.#overdue.allow(afterMs);
    await this.ended;
  }

  hold(): () => void {
    return this.#presence.hold();
  }

  get held(): boolean {
    return this.#presence.count > 0;
  }

  async #openLog(): Promise<ExecLog> {
    const log = await this.#world.store.openLog(this.#record.sandboxId, this.id);
    if (!this.running) await log.end();
    return log;
  }

  #sink(): OutputSink {
    return {
      write: (channel, offset, data) => {
        const written = this.log().then((log) => log.write(channel, offset, data));
        this.#lastWrite = written.catch(() => {});
        return written;
      },
      end: () => {},
    };
  }

  #follow(exec: Exec): void {
    this.#exec = exec;
    void exec.started.then(
      (pid) => {
        this.#record = { ...this.#record, pid };
      },
      () => {},
    );
    const over = exec.result.then(
      (result) => this.#onResult(exec, result),
      (error: unknown) => this.#onFailure(exec, error),
    );
    this.#over = over.catch((error: unknown) => this.#world.report(`the end of ${this.id}`, error));
  }

  async #onResult(exec: Exec, result: ExecResult): Promise<void> {
    if (this.#finishing) return;
    this.#finishing = true;
    const maybeMemory = result.signal === 9 || result.exitCode === 137;
    const oomKilled =
      maybeMemory && !result.timedOut && !result.killed && (await this.#world.ranOutOfMemory());
    const isWritten = await this.#conclude(
      {
        state: 'exited',
        ...(result.exitCode === undefined ? {} : { exitCode: result.exitCode }),
        ...(result.signal === undefined ? {} : { signal: result.signal }),
        timedOut: result.timedOut,
        oomKilled,
        memoryLimitExceeded: result.memoryLimitExceeded,
        killed: result.killed,
        outputIncomplete: result.outputIncomplete,
        leftBehind: result.leftBehind,
        userCpuMs: result.userCpuMicroseconds / 1000,
        systemCpuMs: result.systemCpuMicroseconds / 1000,
        maxRssBytes: result.maxRssBytes,
        stdoutBytes: result.stdoutBytes,
        stderrBytes: result.stderrBytes,
      },
      describeEnd(result, oomKilled),
    );
    // Not before it is written down: until then porter is the only one that knows.
    if (isWritten) exec.forget();
  }

  async #onFailure(exec: Exec, error: unknown): Promise<void> {
    this.#input.detach();
    if (this.#exec === exec) this.#exec = undefined;
    if (!isSallyportError(error) || this.#finishing) return;
    if (error.code === 'exec_start_failed') {
      this.#finishing = true;
      const told = notStarted(this.#record, error);
      await this.#conclude({ state: 'refused', ...failure(told) }, told.message);
    } else if (error.code === 'output_lost') {
      await this.lose(error);
    }
    // Else the connection was lost: it goes on with the next one.
  }

  /**
   * True: it is written down. It is over in any case, and whoever waits for it must hear so, also when the disk is full.
   * He hears of it first, because he waits, and porter still knows it if this process ends before it is written.
   */
  async #conclude(news: Partial<ExecRecord>, outcome: string): Promise<boolean> {
    const { now, checkpoint, report } = this.#world;
    const log = await this.log();
    const { stdout, stderr } = log.stored;
    const record: ExecRecord = {
      ...this.#record,
      stdoutBytes: stdout,
      stderrBytes: stderr,
      endedAt: now(),
      ...news,
    };
    checkpoint('exec.ended');
    await log.end().catch((error: unknown) => report(`end the log of ${this.id}`, error));
    this.#known.resolve(record);
    // Not later than this: what the one who waited asks next comes with the loop's next turn, and finds it written.
    await new Promise((resolve) => setImmediate(resolve));
    const isWritten = this.#writeDown(record, outcome);
    this.#record = record;
    this.#input.close();
    checkpoint('exec.recorded-end');
    this.readerCame();
    this.#presence.end();
    this.#overdue.end();
    this.#ended.resolve();
    this.#world.changed(this);
    return isWritten;
  }

  #writeDown(record: ExecRecord, outcome: string): boolean {
    const { store, report } = this.#world;
    try {
      store.saveExec(record);
      store.events.append(endedEvent(record));
      this.#audit({ outcome, durationMs: Math.round(performance.now() - this.#startedMs) });
      return true;
    } catch (error) {
      report(`write down how ${this.id} ended: ${outcome}`, error);
      return false;
    }
  }

  #audit(news: Pick<AuditLine, 'outcome' | 'durationMs'>): void {
    const { store, sandboxName: sandbox, where } = this.#world;
    const { id: exec, argv, reason } = this.#record;
    store.audit({ sandbox, exec, argv, where, reason, ...news });
  }
}
