/** Finds the engine to use, and tells what was looked at and why: `sally doctor` prints this trace. */

import { isSallyportError, SallyportError } from '../../protocol/errors.ts';
import type { EngineEnvironment } from './config.ts';
import { connect } from './connect.ts';
import { type Candidate, engineCandidates } from './endpoint/candidates.ts';
import { describeEndpoint, type Endpoint } from './endpoint/endpoint.ts';
import type { EngineConnection } from './wire/connection.ts';

export interface Attempt {
  readonly source: string;
  readonly endpoint: string;
  readonly outcome: 'answered' | 'failed';
  /** The user's explicit choice: nothing else was tried after it. */
  readonly exclusive: boolean;
  readonly error?: SallyportError;
}

export interface FoundEngine {
  readonly source: string;
  readonly endpoint: Endpoint;
  readonly connection: EngineConnection;
}

export interface Discovery {
  readonly found?: FoundEngine;
  readonly attempts: readonly Attempt[];
}

export async function discoverEngine(
  env: EngineEnvironment,
  options: { readonly privateSocket?: string; readonly signal?: AbortSignal } = {},
): Promise<Discovery> {
  const attempts: Attempt[] = [];
  for (const candidate of await engineCandidates(env, options.privateSocket)) {
    if (options.signal?.aborted === true) {
      throw new SallyportError('cancelled', 'the search for an engine was cancelled');
    }
    const result = await tryCandidate(candidate, options.signal);
    attempts.push(result.attempt);
    if (result.found !== undefined) return { found: result.found, attempts };
    if (candidate.exclusive) break;
  }
  return { attempts };
}

async function tryCandidate(
  candidate: Candidate,
  signal: AbortSignal | undefined,
): Promise<{ attempt: Attempt; found?: FoundEngine }> {
  const { source, endpoint, exclusive } = candidate;
  if (endpoint instanceof Error) {
    return { attempt: { source, endpoint: '', outcome: 'failed', exclusive, error: endpoint } };
  }
  const name = describeEndpoint(endpoint);
  try {
    const connection = await connect(endpoint, signal === undefined ? {} : { signal });
    return {
      attempt: { source, endpoint: name, outcome: 'answered', exclusive },
      found: { source, endpoint, connection },
    };
  } catch (error) {
    if (!isSallyportError(error) || error.code === 'cancelled') throw error;
    return { attempt: { source, endpoint: name, outcome: 'failed', exclusive, error } };
  }
}

/**
 * The most telling of the failures: an engine that is there but closed to us, stuck or too old says more than nine
 * sockets that do not exist.
 */
export function discoveryError(attempts: readonly Attempt[]): SallyportError {
  const telling = [
    'engine_endpoint_invalid',
    'engine_permission_denied',
    'engine_timeout',
    'engine_too_old',
    'engine_protocol',
    'engine_failed',
  ];
  for (const code of telling) {
    const match = attempts.find((attempt) => attempt.error?.code === code);
    if (match?.error !== undefined) return match.error;
  }
  const [only] = attempts;
  if (attempts.length === 1 && only?.error !== undefined) return only.error;
  return new SallyportError(
    'engine_unreachable',
    `no container engine answered (${attempts.length} places tried)`,
    {
      details: { tried: attempts.map((attempt) => `${attempt.source}: ${attempt.endpoint}`) },
    },
  );
}

export async function findEngine(
  env: EngineEnvironment,
  options: { readonly privateSocket?: string; readonly signal?: AbortSignal } = {},
): Promise<FoundEngine> {
  const { found, attempts } = await discoverEngine(env, options);
  if (found === undefined) throw discoveryError(attempts);
  return found;
}
