/** Set-up on this machine, in plain facts: what the command line prints, with everything of the engine's left behind. */

import { readEngineEnvironment } from '../engines/docker/config.ts';
import { discoverEngine, discoveryError } from '../engines/docker/discover.ts';
import { describeEndpoint } from '../engines/docker/endpoint/endpoint.ts';
import { engineVersion } from '../engines/docker/system/version.ts';
import type { Progress } from '../lib/progress.ts';
import { readSetupEnvironment } from './config.ts';
import { checkBubblewrap, gatherBubblewrap } from './doctor/bubblewrap.ts';
import { type DoctorReport, runDoctor } from './doctor/run-doctor.ts';
import { ensureEngine, type ReadyEngine } from './ensure-engine.ts';
import type { InstallPlan } from './install-plan.ts';
import { privateEnginePaths } from './private-engine/paths.ts';
import { type PrivateEngineStatus, privateEngineStatus } from './private-engine/status.ts';
import { type StopResult, stopPrivateEngine } from './private-engine/stop.ts';

export interface EngineFacts {
  readonly source: string;
  readonly endpoint: string;
  readonly version: string;
  readonly api: string;
}

export interface SetUp {
  readonly engine: EngineFacts;
  readonly how: ReadyEngine['how'];
  readonly privateEngine: boolean;
  readonly durationMs: number;
}

export async function setUpHere(options: {
  readonly progress: Progress;
  /** `ci` is true where nobody can be asked and installing is what is wanted. */
  readonly consent: (plan: InstallPlan, ci: boolean) => Promise<boolean>;
  readonly signal: AbortSignal;
}): Promise<SetUp> {
  const setup = readSetupEnvironment();
  const startedAt = performance.now();
  const { found, how, privateEngine } = await ensureEngine({
    environment: readEngineEnvironment(),
    setup,
    progress: options.progress,
    consent: (plan) => options.consent(plan, setup.ci),
    signal: options.signal,
  });
  const durationMs = Math.round(performance.now() - startedAt);
  const { engine: version, api } = await engineVersion(found.connection, { signal: options.signal });
  const endpoint = describeEndpoint(found.endpoint);
  return { engine: { source: found.source, endpoint, version, api }, how, privateEngine, durationMs };
}

export interface SetupStatus {
  readonly engine: Pick<EngineFacts, 'source' | 'endpoint'> | null;
  /** Why there is no engine. */
  readonly problem?: string;
  readonly privateEngine: PrivateEngineStatus;
  readonly tried: ReadonlyArray<{
    readonly source: string;
    readonly endpoint: string;
    readonly outcome: string;
    readonly code?: string;
    readonly message?: string;
  }>;
}

export async function statusHere(signal: AbortSignal): Promise<SetupStatus> {
  const paths = privateEnginePaths(readSetupEnvironment());
  const { found, attempts } = await discoverEngine(readEngineEnvironment(), {
    privateSocket: paths.socket,
    signal,
  });
  return {
    engine: found === undefined ? null : { source: found.source, endpoint: describeEndpoint(found.endpoint) },
    ...(found === undefined ? { problem: discoveryError(attempts).message } : {}),
    privateEngine: await privateEngineStatus(paths, { signal }),
    tried: attempts.map(({ source, endpoint, outcome, error }) => ({
      source,
      endpoint,
      outcome,
      ...(error === undefined ? {} : { code: error.code, message: error.message }),
    })),
  };
}

export async function stopHere(progress: Progress): Promise<StopResult & { readonly dataRoot: string }> {
  const setup = readSetupEnvironment();
  const paths = privateEnginePaths(setup);
  const result = await stopPrivateEngine(paths, { environment: setup.childVariables, progress });
  return { ...result, dataRoot: paths.dataRoot };
}

/** Its name, where it is installed and this kernel lets this user have it. */
export async function bubblewrapHere(): Promise<string | undefined> {
  const facts = await gatherBubblewrap(readSetupEnvironment());
  const isUsable = facts.version !== undefined && checkBubblewrap(facts).status === 'ok';
  return isUsable ? 'bubblewrap' : undefined;
}

export async function doctorHere(signal: AbortSignal): Promise<DoctorReport> {
  return await runDoctor({ environment: readEngineEnvironment(), setup: readSetupEnvironment(), signal });
}
