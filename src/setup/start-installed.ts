/** Tries the known ways to start an installed engine, and looks every two seconds whether one answers (C3). */

import { setTimeout as delay } from 'node:timers/promises';
import type { Discovery, FoundEngine } from '../engines/docker/discover.ts';
import type { Progress } from '../lib/progress.ts';
import { SallyportError } from '../protocol/errors.ts';
import { runCommand } from './run-command.ts';
import type { StartWay } from './start-ways.ts';

export interface StartTiming {
  readonly pollMs: number;
  readonly waitMs: number;
}

export const defaultStartTiming: StartTiming = { pollMs: 2_000, waitMs: 45_000 };

export interface StartRequest {
  readonly ways: readonly StartWay[];
  /** Looks for an engine afresh each time: "unavailable" is never remembered. */
  readonly discover: () => Promise<Discovery>;
  readonly startPrivate: (dockerd: string) => Promise<void>;
  readonly environment: Readonly<Record<string, string>>;
  readonly progress: Progress;
  readonly timing?: StartTiming;
  readonly signal?: AbortSignal;
}

export interface StartedByWay {
  readonly found: FoundEngine;
  readonly way: StartWay;
}

/** Undefined when nothing is installed that could be started; throws when something is and does not come up. */
export async function startInstalled(request: StartRequest): Promise<StartedByWay | undefined> {
  const failures: string[] = [];
  for (const way of request.ways) {
    if (way.kind === 'advice') {
      throw new SallyportError('engine_unreachable', `${way.name} is installed but not running`, {
        advice: `Only root may start it: run \`${way.commandLine}\`, then \`sally setup\` again.`,
      });
    }
    request.progress({ step: 'engine', message: `starting ${way.name}` });
    const result =
      way.kind === 'private' ? await byPrivate(request, way.dockerd) : await byCommand(request, way.command);
    if ('found' in result) return { found: result.found, way };
    failures.push(`${way.name}: ${result.failure}`);
  }
  if (failures.length === 0) return undefined;
  throw new SallyportError('engine_start_failed', `no engine came up: ${failures.join('; ')}`, {
    details: { failures },
    advice: 'Start your engine by hand, see what it says, then run `sally setup` again.',
  });
}

type Outcome = { readonly found: FoundEngine } | { readonly failure: string };

async function byPrivate(request: StartRequest, dockerd: string): Promise<Outcome> {
  await request.startPrivate(dockerd);
  const { found } = await request.discover();
  return found === undefined ? { failure: 'it answered once and then no more' } : { found };
}

async function byCommand(request: StartRequest, command: readonly [string, ...string[]]): Promise<Outcome> {
  const { pollMs, waitMs } = request.timing ?? defaultStartTiming;
  const { signal } = request;
  const quit = new AbortController();
  const ended = new AbortController();
  let failure: string | undefined;
  const running = runCommand(command, {
    environment: request.environment,
    timeoutMs: waitMs,
    signal: signal === undefined ? quit.signal : AbortSignal.any([signal, quit.signal]),
  }).then(({ exitCode, outputTail }) => {
    if (exitCode !== 0) failure = outputTail.split('\n').at(-1) || `\`${command.join(' ')}\` failed`;
    ended.abort();
  });
  try {
    const startedAt = performance.now();
    const elapsedMs = (): number => performance.now() - startedAt;
    for (;;) {
      // The end of the command is a reason to look at once; after that only the clock is.
      await pause(pollMs, ended.signal.aborted ? [signal] : [signal, ended.signal]);
      if (signal?.aborted === true) throw new SallyportError('cancelled', 'starting an engine was cancelled');
      request.progress({ step: 'engine', message: waiting(elapsedMs(), waitMs) });
      const { found } = await request.discover();
      if (found !== undefined) {
        await running;
        return { found };
      }
      if (failure !== undefined) return { failure };
      if (elapsedMs() >= waitMs) return { failure: `no answer within ${seconds(waitMs)} s` };
    }
  } finally {
    quit.abort();
    await running;
  }
}

async function pause(durationMs: number, wakers: ReadonlyArray<AbortSignal | undefined>): Promise<void> {
  const signal = AbortSignal.any(wakers.filter((waker) => waker !== undefined));
  await delay(durationMs, undefined, { signal }).catch(() => {});
}

function waiting(elapsedMs: number, waitMs: number): string {
  return `waiting for the engine (${seconds(elapsedMs)} s of at most ${seconds(waitMs)} s)`;
}

function seconds(durationMs: number): number {
  return Math.round(durationMs / 1000);
}
