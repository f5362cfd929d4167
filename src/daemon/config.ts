/** What the process environment says to the daemon, read once at the edge and passed on as plain data. */

import { Resolver } from 'node:dns';
import { delimiter, isAbsolute } from 'node:path';
import { currentContext } from '../lib/current-context.ts';
import { parseDuration } from '../lib/durations.ts';
import { type StateLocation, stateLocation } from '../lib/state-location.ts';
import {
  type EngineChoice,
  type EngineName,
  engineChoice,
  readEngineName,
  withCurrentContext,
} from '../protocol/engine-environment.ts';
import { SallyportError } from '../protocol/errors.ts';

export interface CrashPoint {
  readonly name: string;
  /** The process ends when it passes the point for this time. */
  readonly passing: number;
}

export interface DaemonConfig extends StateLocation {
  /** The engine that the environment names. */
  readonly engine: EngineName;
  readonly choice: EngineChoice;
  /** Without a client and without a sandbox that runs for this long, the daemon stops. */
  readonly idleMs: number;
  /** Where the user's SSH agent is. */
  readonly sshAgentPath?: string;
  /** Whom the gate asks for names; absent: the resolvers of this machine. */
  readonly dnsServers?: readonly string[];
  /** A file of certificates that servers behind the gate may be signed by, besides those of the system. */
  readonly extraRoots?: string;
  /** Where programs are that the daemon starts. */
  readonly programFolders: readonly string[];
  /** Settings of the user for the Tor client that the daemon starts. */
  readonly torSettings?: string;
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
  const dnsServers = env['SALLYPORT_DNS_SERVERS'];
  const extraRoots = env['SALLYPORT_EXTRA_CA_CERTS'];
  const torSettings = env['SALLYPORT_TOR_CONFIG'];
  return {
    ...stateLocation(env),
    engine: readEngineName(env),
    choice: engineChoice(withCurrentContext(env, () => currentContext(env))),
    idleMs: readIdle(env['SALLYPORT_DAEMON_IDLE']),
    ...(sshAgentPath === undefined ? {} : { sshAgentPath }),
    ...(dnsServers === undefined || dnsServers === '' ? {} : { dnsServers: readServers(dnsServers) }),
    ...(extraRoots === undefined || extraRoots === '' ? {} : { extraRoots }),
    programFolders: [...(env['PATH'] ?? '').split(delimiter).filter(isAbsolute), '/usr/bin', '/usr/sbin'],
    ...(torSettings === undefined || torSettings === '' ? {} : { torSettings }),
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

function readServers(value: string): readonly string[] {
  const servers = value.split(',').map((server) => server.trim());
  try {
    new Resolver().setServers(servers);
    return servers;
  } catch (cause) {
    throw new SallyportError('usage', `SALLYPORT_DNS_SERVERS is ${JSON.stringify(value)}`, {
      advice: 'Write addresses with a comma between them, such as 10.0.0.53,127.0.0.1:5353.',
      cause,
    });
  }
}

function readCrashPoint(value: string): CrashPoint {
  const [, name, passing = '1'] = /^([\w.-]+)(?::([1-9]\d{0,8}))?$/.exec(value) ?? [];
  if (name !== undefined) return { name, passing: Number(passing) };
  throw new SallyportError('usage', `SALLYPORT_CRASH_AT is ${JSON.stringify(value)}`, {
    advice: 'Write it as <point> or <point>:<how many times it is passed>.',
  });
}
