/**
 * Runs a command where its judgement sends it: on the host, in a sandbox, or nowhere; after a question where there is one.
 *
 * It fails closed. What cannot be asked is a no, what belongs in a sandbox runs on the host only where no engine of any
 * kind is there and a person said yes to that, and nothing runs on the host that could not be put on record before.
 */

import type { Evaluation } from '../policy/command-risk/risk.ts';
import { isSallyportError } from '../protocol/errors.ts';
import type { GuardRecord, GuardResult } from '../protocol/guard.ts';
import { noEngine } from '../protocol/no-engine.ts';
import type { GuardedCommand } from './guarded-command.ts';
import type { HostRun } from './host-run.ts';

export interface HostLimits {
  readonly timeoutMs: number;
  readonly graceMs: number;
  readonly outputBytes: number;
}

export interface SandboxedRun extends HostRun {
  readonly engine: string;
  /** Where the sandbox was not what a guarded command gets elsewhere. */
  readonly note?: string;
  /** Kept after the command. */
  readonly sandbox?: string;
}

export interface Asked {
  readonly approved: boolean;
  readonly id?: string;
  /** Completes "it was …". */
  readonly how: string;
}

export interface SandboxRunOptions {
  readonly timeoutMs: number;
  readonly reason: string;
  /** Called when its sandbox is there: from then on the command may have run, whatever fails. */
  readonly made: () => void;
}

export interface GuardParts {
  readonly judge: (text: string) => Evaluation;
  /** Absent: nobody is there. */
  readonly ask?: (command: GuardedCommand, evaluation: Evaluation) => Promise<Asked>;
  /** Rejects with `engine_unreachable` and the like where there is no engine. */
  readonly runInSandbox: (command: GuardedCommand, options: SandboxRunOptions) => Promise<SandboxedRun>;
  readonly runOnHost: (command: GuardedCommand, limits: HostLimits) => Promise<HostRun>;
  /** False: the folder is not the one in which the command was judged. */
  readonly isSameFolder: () => boolean;
  /** Whether the shell is there whose language is judged. */
  readonly hasShell: () => boolean;
  /** Another engine than Docker that could be used: then a run without isolation is out of the question. */
  readonly otherEngine: () => Promise<string | undefined>;
  /** Asks a person at a terminal whether this may run WITHOUT ISOLATION. Absent: nobody is there. */
  readonly confirmNoIsolation?: (command: GuardedCommand, evaluation: Evaluation) => Promise<boolean>;
  /** Rejects where it could not be written down. */
  readonly record: (record: GuardRecord) => Promise<void>;
}

const plainLimits = { graceMs: 1000, outputBytes: 256 * 1024 };
/** C4. */
const fallbackLimits = { timeoutMs: 10_000, graceMs: 0, outputBytes: 50 * 1024 };
const recordedCharacters = 10_000;

export async function guardCommand(
  command: GuardedCommand,
  timeoutMs: number,
  parts: GuardParts,
): Promise<GuardResult> {
  const evaluation = parts.judge(command.text);
  const run = new GuardedRun(command, evaluation, timeoutMs, parts);
  if (evaluation.route === 'deny') return await run.reject(`blocked: ${why(evaluation)}`);
  const isForHost = evaluation.route === 'host' && (command.argv !== undefined || parts.hasShell());
  try {
    const refusal = evaluation.confirm ? await run.ask() : undefined;
    if (refusal !== undefined) return await run.reject(refusal);
    return isForHost ? await run.onHost() : await run.inSandbox();
  } catch (error) {
    // What may have run once is not run again elsewhere, nor called rejected.
    if (run.wasMade || !isSallyportError(error) || !noEngine.has(error.code)) throw error;
    if (isForHost) return await run.reject('it needs a yes, and without an engine there is nobody to ask');
    return await run.withoutIsolation(error.message);
  }
}

class GuardedRun {
  readonly #command: GuardedCommand;
  readonly #evaluation: Evaluation;
  readonly #timeoutMs: number;
  readonly #parts: GuardParts;
  #approval: string | undefined;
  /** It had a sandbox. */
  wasMade = false;

  constructor(command: GuardedCommand, evaluation: Evaluation, timeoutMs: number, parts: GuardParts) {
    this.#command = command;
    this.#evaluation = evaluation;
    this.#timeoutMs = timeoutMs;
    this.#parts = parts;
  }

  /** Why it may not run; undefined: it may. */
  async ask(): Promise<string | undefined> {
    const { ask } = this.#parts;
    if (ask === undefined) return `${why(this.#evaluation)}: it needs a yes, and there is nobody to ask`;
    const { approved, id, how } = await ask(this.#command, this.#evaluation);
    this.#approval = id;
    return approved ? this.#swapped() : `${why(this.#evaluation)}: it was ${how}`;
  }

  /** SECURITY: while a person thinks, a sandbox that has the folder above could put another one in its place. */
  #swapped(): string | undefined {
    if (this.#parts.isSameFolder()) return undefined;
    return `${why(this.#evaluation)}: another folder is in the place of the one that it was judged in`;
  }

  async onHost(): Promise<GuardResult> {
    return await this.#hostRun('host', { timeoutMs: this.#timeoutMs, ...plainLimits });
  }

  async inSandbox(): Promise<GuardResult> {
    const reason = this.#reason();
    const { engine, note, sandbox, ...run } = await this.#parts.runInSandbox(this.#command, {
      timeoutMs: this.#timeoutMs,
      reason: `guard: ${reason}`,
      made: () => {
        this.wasMade = true;
      },
    });
    const whole = note === undefined ? reason : `${reason}; ${note}`;
    return {
      ...ended(run),
      sandboxed: true,
      engine,
      reason: whole,
      ...(sandbox === undefined ? {} : { sandbox }),
    };
  }

  /** C4: never unattended, never where something better is there. */
  async withoutIsolation(problem: string): Promise<GuardResult> {
    const { otherEngine, confirmNoIsolation } = this.#parts;
    const reason = why(this.#evaluation);
    const other = await otherEngine();
    if (other !== undefined) {
      return await this.reject(`${reason}: ${problem}, and ${other} is there to be used instead`);
    }
    if (confirmNoIsolation === undefined) {
      return await this.reject(
        `${reason}: ${problem}, and there is nobody to ask for a run without isolation`,
      );
    }
    if (!(await confirmNoIsolation(this.#command, this.#evaluation))) {
      return await this.reject(`${reason}: a run without isolation was denied`);
    }
    const swapped = this.#swapped();
    if (swapped !== undefined) return await this.reject(swapped);
    const { timeoutMs, ...limits } = fallbackLimits;
    const asked = this.#timeoutMs === 0 ? timeoutMs : this.#timeoutMs;
    return await this.#hostRun('host without isolation', {
      ...limits,
      timeoutMs: Math.min(timeoutMs, asked),
    });
  }

  async reject(reason: string): Promise<GuardResult> {
    await this.#record('nowhere', reason, 'rejected');
    return {
      status: 'rejected',
      stdout: '',
      stderr: '',
      exitCode: null,
      durationMs: 0,
      sandboxed: false,
      engine: 'none',
      reason,
    };
  }

  async #hostRun(where: 'host' | 'host without isolation', limits: HostLimits): Promise<GuardResult> {
    const reason = where === 'host' ? this.#reason() : `${this.#reason()}, without isolation`;
    // Before it runs: what cannot be put on record does not happen.
    await this.#record(where, reason, 'started');
    const run = await this.#parts.runOnHost(this.#command, limits);
    const outcome = run.timedOut ? 'timed out' : `exit ${run.exitCode}`;
    await this.#record(where, reason, outcome, run.durationMs);
    return { ...ended(run), sandboxed: false, engine: 'host', reason };
  }

  #reason(): string {
    const approved = this.#approval === undefined ? '' : `, approved (${this.#approval})`;
    return `${why(this.#evaluation)}${approved}`;
  }

  async #record(
    where: GuardRecord['where'],
    reason: string,
    outcome: string,
    durationMs?: number,
  ): Promise<void> {
    await this.#parts.record({
      command: this.#command.text.slice(0, recordedCharacters),
      where,
      class: this.#evaluation.class,
      reason: reason.slice(0, 1000),
      outcome,
      ...(this.#approval === undefined ? {} : { approval: this.#approval }),
      ...(durationMs === undefined ? {} : { duration_ms: durationMs }),
    });
  }
}

function ended({ stdout, stderr, exitCode, timedOut, durationMs }: HostRun) {
  const status: GuardResult['status'] = timedOut ? 'timeout' : exitCode === 0 ? 'success' : 'error';
  return { status, stdout, stderr, exitCode, durationMs };
}

/** The class and the worst reason, in a few words. */
export function why({ class: riskClass, reasons: [worst] }: Evaluation): string {
  const words = riskClass.replaceAll('_', ' ');
  return worst === undefined ? words : `${words}: ${worst.text}`.slice(0, 500);
}
