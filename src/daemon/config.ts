/** What the process environment says to the daemon, read once at the edge and passed on as plain data. */

import { parseDuration } from '../lib/durations.ts';
import { type StateLocation, stateLocation } from '../lib/state-location.ts';
import { hashEngineEnvironment } from '../protocol/engine-environment.ts';
import { SallyportError } from '../protocol/errors.ts';

export interface CrashPoint {
  readonly name: string;
  /** The process ends when it passes the point for this time. */
  readonly passing: number;
}

export interface DaemonConfig extends StateLocation {
  readonly engineEnvironment: string;
  /** Without a client and without a sandbox that runs for this long, the daemon stops. */
  readonly idleMs: number;
  /** Where the user's SSH agent is. */
  readonly sshAgentPath?: string;
  /** For tests of recovery: where the process kills itself. */
  readonly crashAt?: CrashPoint;
}

const defaultIdleMs = 10 * 60_000;

export function readStateLocation(env: NodeJS.ProcessEnv = process.env): StateLocation {
  return stateLocation(env);
}

export function readDaemonConfig(env: NodeJS.ProcessEnv = process.env): DaemonConfig {
  const crashAt = env['SALLYPORT_CRASH_AT'];
  const sshAgentPath = env['SSH_AUTH_SOCK'];
  return {
    ...stateLocation(env),
    engineEnvironment: hashEngineEnvironment(env),
    idleMs: readIdle(env['SALLYPORT_DAEMON_IDLE']),
    ...(sshAgentPath === undefined ? {} : { sshAgentPath }),
    ...(crashAt === undefined || crashAt === '' ? {} : { crashAt: readCrashPoint(crashAt) }),
  };
}

function readIdle(value: string | undefined): number {
  if (value === undefined || value === '') return defaultIdleMs;
  if (value === 'never') return Number.POSITIVE_INFINITY;
  const ms = parseDuration(value);
  if (ms !== undefined && ms > 0) return ms;
  throw new SallyportError(
    'usage',
    `SALLYPORT_DAEMON_IDLE is ${JSON.stringify(value)}, which is no duration`,
    {
      advice: 'Write it like 30s, 10m, or never.',
    },
  );
}

function readCrashPoint(value: string): CrashPoint {
  const [, name, passing = '1'] = /^([\w.-]+)(?::([1-9]\d{0,8}))?$/.exec(value) ?? [];
  if (name !== undefined) return { name, passing: Number(passing) };
  throw new SallyportError('usage', `SALLYPORT_CRASH_AT is ${JSON.stringify(value)}`, {
    advice: 'Write it as <point> or <point>:<how many times it is passed>.',
  });
}
