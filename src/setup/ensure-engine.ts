/**
 * From a machine in any state to an engine that answers, with as little done to the machine as possible: use what answers,
 * else start what is installed, else install, and that only with consent.
 */

import type { EngineEnvironment } from '../engines/docker/config.ts';
import {
  type Attempt,
  type Discovery,
  discoverEngine,
  discoveryError,
  type FoundEngine,
} from '../engines/docker/discover.ts';
import type { Progress } from '../lib/progress.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { SetupEnvironment } from './config.ts';
import { gatherHostFacts, type HostFacts } from './host-facts.ts';
import { type InstallPlan, installPlan } from './install-plan.ts';
import { privateEnginePaths } from './private-engine/paths.ts';
import { startPrivateEngine } from './private-engine/start.ts';
import { type StartTiming, startInstalled } from './start-installed.ts';
import { startWays } from './start-ways.ts';

export interface EnsureEngineRequest {
  readonly environment: EngineEnvironment;
  readonly setup: SetupEnvironment;
  readonly progress: Progress;
  readonly consent: (plan: InstallPlan) => Promise<boolean>;
  readonly signal?: AbortSignal;
  readonly timing?: StartTiming;
  readonly machine?: Machine;
}

export interface ReadyEngine {
  readonly found: FoundEngine;
  readonly how: 'answered' | 'started' | 'installed';
  readonly privateEngine: boolean;
}

/** What set-up does to the machine it runs on; by default to this one. */
export interface Machine {
  readonly discover: () => Promise<Discovery>;
  readonly facts: () => Promise<HostFacts>;
  readonly install: (plan: InstallPlan) => Promise<void>;
  readonly startPrivate: (dockerd: string) => Promise<void>;
}

export async function ensureEngine(request: EnsureEngineRequest): Promise<ReadyEngine> {
  const machine = request.machine ?? thisMachine(request);
  try {
    return await ensure(request, machine);
  } catch (error) {
    if (request.signal?.aborted === true && !isSallyportError(error)) {
      throw new SallyportError('cancelled', 'setting up an engine was cancelled', { cause: error });
    }
    throw error;
  }
}

async function ensure(request: EnsureEngineRequest, machine: Machine): Promise<ReadyEngine> {
  const { socket } = privateEnginePaths(request.setup);
  const ready = (found: FoundEngine, how: ReadyEngine['how']): ReadyEngine => ({
    found,
    how,
    privateEngine: found.endpoint.kind === 'unix' && found.endpoint.path === socket,
  });
  request.progress({ step: 'engine', message: 'looking for a container engine' });
  const first = await machine.discover();
  if (first.found !== undefined) return ready(first.found, 'answered');
  if (!mayStartAnother(first.attempts)) throw standingInTheWay(first.attempts);

  const started = await start(request, machine);
  if (started !== undefined) return ready(started, 'started');

  const plan = installPlan(await machine.facts());
  await agree(request, plan);
  await machine.install(plan);
  // The package's own service may have started an engine at the usual place.
  const second = await machine.discover();
  if (second.found !== undefined) return ready(second.found, 'installed');
  const installed = await start(request, machine);
  if (installed !== undefined) return ready(installed, 'installed');
  throw new SallyportError('setup_failed', `${plan.packages.join(', ')} installed, but there is no dockerd`);
}

/**
 * For who only wants to use an engine: one that answers, else one that is installed and can be started. It installs nothing
 * and asks nobody. Looked for afresh each time: that there was none is never remembered (C3).
 */
export async function findOrStartEngine(request: Omit<EnsureEngineRequest, 'consent'>): Promise<FoundEngine> {
  const machine = request.machine ?? thisMachine(request);
  const { found, attempts } = await machine.discover();
  if (found !== undefined) return found;
  if (!mayStartAnother(attempts)) throw discoveryError(attempts);
  request.progress({ step: 'engine', message: 'no engine answers; looking for one to start' });
  const started = await start(request, machine);
  if (started === undefined) throw discoveryError(attempts);
  request.progress({ step: 'engine-ready', message: `the engine answers (${started.source})` });
  return started;
}

async function start(
  request: Omit<EnsureEngineRequest, 'consent'>,
  machine: Machine,
): Promise<FoundEngine | undefined> {
  const { progress, signal, timing } = request;
  const result = await startInstalled({
    ways: startWays(await machine.facts()),
    discover: machine.discover,
    startPrivate: machine.startPrivate,
    environment: request.setup.childVariables,
    progress,
    ...(signal === undefined ? {} : { signal }),
    ...(timing === undefined ? {} : { timing }),
  });
  return result?.found;
}

/**
 * An engine that the user chose, or one that is there but closed to us, stuck or too old, is a problem to be told about.
 * Starting another beside it would hide that.
 */
export function mayStartAnother(attempts: readonly Attempt[]): boolean {
  return attempts.every(({ exclusive, error }) => !exclusive && error?.code === 'engine_unreachable');
}

function standingInTheWay(attempts: readonly Attempt[]): SallyportError {
  const chosen = attempts.find(({ exclusive }) => exclusive);
  if (chosen?.error?.code !== 'engine_unreachable') return discoveryError(attempts);
  const { message, details, cause } = chosen.error;
  return new SallyportError('engine_unreachable', `${message} (chosen by ${chosen.source})`, {
    details,
    cause,
    advice: 'Start that engine, or take the choice back (`unset DOCKER_HOST`, `docker context use default`).',
  });
}

async function agree(request: EnsureEngineRequest, plan: InstallPlan): Promise<void> {
  if (await request.consent(plan)) return;
  if (request.signal?.aborted === true) throw new SallyportError('cancelled', 'set-up was cancelled');
  throw new SallyportError(
    'setup_refused',
    `no container engine is installed, and nobody agreed to install ${plan.packages.join(', ')}`,
    { details: { packages: plan.packages, commands: plan.commands } },
  );
}

function thisMachine({
  environment,
  setup,
  progress,
  signal,
}: Omit<EnsureEngineRequest, 'consent'>): Machine {
  const paths = privateEnginePaths(setup);
  const abort = signal === undefined ? {} : { signal };
  return {
    discover: () => discoverEngine(environment, { privateSocket: paths.socket, ...abort }),
    facts: () => gatherHostFacts(setup),
    install: async (plan) => {
      // Loaded only where something is installed: nearly every run finds an engine.
      const { installPackages } = await import('../images/debian-packages.ts');
      await installPackages(plan.packages, { progress, ...abort });
    },
    startPrivate: async (dockerd) => {
      await startPrivateEngine(paths, { dockerd, environment: setup.childVariables, progress, ...abort });
    },
  };
}
