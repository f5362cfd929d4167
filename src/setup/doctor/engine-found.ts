/** Which engine was chosen and why: the whole trace of the search (G3). */

import { type Attempt, type Discovery, discoveryError } from '../../engines/docker/discover.ts';
import { describeEndpoint } from '../../engines/docker/endpoint/endpoint.ts';
import type { Check } from './check.ts';

export function checkEngineFound({ found, attempts }: Discovery): Check {
  const check = { id: 'engine', title: 'engine', details: attempts.map(describeAttempt) } as const;
  if (found !== undefined) {
    return { ...check, status: 'ok', value: `${found.source}, ${describeEndpoint(found.endpoint)}` };
  }
  const error = discoveryError(attempts);
  return { ...check, status: 'fail', value: error.message, advice: error.advice };
}

function describeAttempt({ source, endpoint, outcome, error }: Attempt): string {
  const place = endpoint === '' ? source : `${source} (${endpoint})`;
  if (outcome === 'answered') return `${place}: answered, chosen`;
  const message = error?.message ?? 'failed';
  // The message of an unreachable socket repeats its address.
  return `${place}: ${message.replace(`no engine at ${endpoint}: `, '').replace(` on ${endpoint}`, '')}`;
}
