/**
 * One command in a sandbox, from its first record to its last, over as many connections as it takes.
 *
 * Its output goes to its log and is acknowledged only there; so a daemon that dies loses nothing of it. A foreground
 * command belongs to a client: when none has been there for a while it is killed.
 */

import { deferred } from '../lib/deferred.ts';
import { signalName, signalNumber } from '../lib/signals.ts';
import type { Exec, ExecRequest, ExecResult } from '../porter/exec.ts';
import type { OutputSink } from '../porter/output-sink.ts';
import type { KnownExec, Porter } from '../porter/porter.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { ExecId } from '../protocol/ids.ts';
import type { ExecResultView, ExecView } from '../protocol/views.ts';
import { capturedView, captureLimitBytes } from './captured-output.ts';
import { execView } from './exec-view.ts';
import { InputRelay } from './input-relay.ts';
import type { ExecLog, SandboxStore } from './ports.ts';
import { Presence } from './presence.ts';
import type { ExecRecord } from './records.ts';

const graceMs = 5000;

export interface ExecWorld {
  readonly store: SandboxStore;
  readonly now: () => string;
  readonly checkpoint: (name: string) => void;
  readonly clientAbsenceMs: number;
  /** Whether the kernel has killed something in this sandbox for want of memory since this was last asked. */
  readonly ranOutOfMemory: () => Promise<boolean>;
  /** For the audit: the sandbox, its image and its isolation. */
  readonly where: string;
  readonly sandboxName: string;
  readonly changed: (exec: BoxExec) => void;
}

export class BoxExec {
  readonly #world: ExecWorld;
  readonly #ended = deferred<void>();
  readonly #input = new InputRelay();
  readonly #presence: Presence;
  #record: ExecRecord;
  #exec: Exec | undefined;
  #log: Promise<ExecLog> | undefined;
  #lastWrite: Promise<void> = Promise.resolve();
  #startedMs = performance.now();
  #finishing = false;
  /** Somebody wants it dead: said again on every new connection. */
  #killAfterMs: number | undefined;

  constructor(world: ExecWorld, record: ExecRecord) {
    this.#world = world;
    this.#record = record;
    this.#presence = new Presence(world.clientAbsenceMs, () => {
      if (!this.#record.background) void this.kill(graceMs);
    });
    if (record.state !== 'running') this.#ended.resolve();
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

  /** Resolves when it is over, however it ended: `view` says how. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  view(): ExecView {
    return execView(this.#record);
  }

  /** Written down, told, and only then sent. */
  begin(porter: Porter, request: ExecRequest): void {
    const { store, checkpoint } = this.#world;
    store.saveExec(this.#record);
    checkpoint('exec.recorded');
    store.events.append({
      type: 'exec.started',
      sandbox_id: this.#record.sandboxId,
      exec_id: this.id,
      argv: [...this.#record.argv],
      background: this.#record.background,
    });
    const exec = porter.exec(request, this.#sink(), this.stream);
    checkpoint('exec.sent');
    this.#input.begin(exec);
    this.#follow(exec);
    if (!this.#record.background) this.#presence.watch();
  }

  /** Goes on with it on a new connection. */
  async resume(porter: Porter, known: KnownExec): Promise<void> {
    const log = await this.log();
    await this.#lastWrite;
    const { stdout, stderr } = log.stored;
    const exec = porter.resume(known, { stdout, stderr }, this.#sink());
    this.#input.resume(exec, known.inputBytes);
    this.#follow(exec);
    if (this.#killAfterMs !== undefined) exec.kill(this.#killAfterMs);
    if (!this.#record.background) this.#presence.watch();
  }

  /** The sandbox knows nothing of it any more, or never did. */
  async lose(error: SallyportError): Promise<void> {
    if (!this.running || this.#finishing) return;
    this.#finishing = true;
    await this.#lastWrite;
    await this.#conclude({ state: 'lost', ...failure(error) }, error.message);
  }

  async log(): Promise<ExecLog> {
    this.#log ??= this.#openLog();
    return await this.#log;
  }

  async result(): Promise<ExecResultView> {
    await this.ended;
    const log = await this.log();
    const [stdout, stderr, output] = await Promise.all([
      log.capture('stdout', captureLimitBytes),
      log.capture('stderr', captureLimitBytes),
      log.capture('output', captureLimitBytes),
    ]);
    return {
      exec: this.view(),
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
    this.#exec?.signal(number);
  }

  resize(rows: number, columns: number): void {
    this.#exec?.resize(rows, columns);
  }

  /** Resolves when everything that it started is dead. */
  async kill(afterMs: number): Promise<void> {
    if (!this.running) return;
    this.#killAfterMs = afterMs;
    this.#exec?.kill(afterMs);
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
    void exec.result.then(
      (result) => this.#onResult(exec, result),
      (error: unknown) => this.#onFailure(exec, error),
    );
  }

  async #onResult(exec: Exec, result: ExecResult): Promise<void> {
    if (this.#finishing) return;
    this.#finishing = true;
    const maybeMemory = result.signal === 9 || result.exitCode === 137;
    const oomKilled =
      maybeMemory && !result.timedOut && !result.killed && (await this.#world.ranOutOfMemory());
    await this.#conclude(
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
      describe(result, oomKilled),
    );
    // Not before it is written down: until then porter is the only one that knows. And after the answer, which waits for nothing.
    setImmediate(() => exec.forget());
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

  async #conclude(news: Partial<ExecRecord>, outcome: string): Promise<void> {
    const { store, now, checkpoint } = this.#world;
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
    store.saveExec(record);
    this.#record = record;
    store.events.append(endedEvent(record));
    store.audit({
      sandbox: this.#world.sandboxName,
      exec: record.id,
      argv: record.argv,
      where: this.#world.where,
      reason: record.reason,
      outcome,
      durationMs: Math.round(performance.now() - this.#startedMs),
    });
    checkpoint('exec.recorded-end');
    await log.end();
    this.#presence.end();
    this.#ended.resolve();
    this.#world.changed(this);
  }
}

function failure(error: SallyportError): Pick<ExecRecord, 'error'> {
  const { code, kind, message, advice, details } = error;
  return { error: { code, kind, message, advice, details } };
}

const waysOut: Readonly<Record<number, (cwd: string) => string>> = {
  2: (cwd) => `Check that the program is in the image, and that the folder ${cwd} exists.`,
  7: () =>
    'Pass less by arguments and variables (one may have 128 KiB), and the rest by a file or standard input.',
  11: () => 'The sandbox has as many processes as it may: end some, or give it more (`limits.pids`).',
  13: (cwd) => `Check that the program may be executed, and that the folder ${cwd} may be entered.`,
};

/** The sandbox tells a number and the kernel's words; what was tried is known here. */
function notStarted({ argv: [program = ''], cwd }: ExecRecord, error: SallyportError): SallyportError {
  const advice = waysOut[Number(error.details['errno'])]?.(cwd) ?? error.advice;
  return new SallyportError(
    'exec_start_failed',
    `${program} could not be started in ${cwd}: ${error.message}`,
    {
      details: { ...error.details, program, cwd },
      advice,
      cause: error,
    },
  );
}

function endedEvent(record: ExecRecord) {
  const { state, exitCode, signal } = record;
  return {
    type: 'exec.ended' as const,
    sandbox_id: record.sandboxId,
    exec_id: record.id,
    state: state === 'running' ? ('lost' as const) : state,
    timed_out: record.timedOut ?? false,
    oom_killed: record.oomKilled ?? false,
    ...(exitCode === undefined ? {} : { exit_code: exitCode }),
    ...(signal === undefined ? {} : { signal: signalName(signal) }),
  };
}

function describe(result: ExecResult, oomKilled: boolean): string {
  if (result.timedOut) return 'timed out';
  if (oomKilled) return 'out of memory';
  if (result.memoryLimitExceeded) return 'memory limit of the command exceeded';
  return result.signal === undefined
    ? `exit ${result.exitCode ?? '?'}`
    : `signal ${signalName(result.signal)}`;
}
