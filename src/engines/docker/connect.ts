/** From an endpoint to a connection that speaks a version both sides know. */

import { SallyportError } from '../../protocol/errors.ts';
import { describeEndpoint, type Endpoint } from './endpoint/endpoint.ts';
import { ping } from './system/ping.ts';
import { type CallOptions, EngineConnection } from './wire/connection.ts';
import { openTransport } from './wire/transport.ts';

/** Docker Engine 20.10. */
export const oldestApi = '1.41';
/** The newest version whose changes were read and whose fields are used here. */
export const newestApi = '1.51';

export function compareApi(a: string, b: string): number {
  const [aMajor = 0, aMinor = 0] = a.split('.').map(Number);
  const [bMajor = 0, bMinor = 0] = b.split('.').map(Number);
  return aMajor - bMajor || aMinor - bMinor;
}

/** The version to speak with a server whose newest is `server`. */
export function negotiateApi(server: string, endpoint: string): string {
  if (!/^\d+\.\d+$/.test(server)) {
    throw new SallyportError('engine_protocol', `${endpoint} answered a ping without an API version`, {
      details: { endpoint },
    });
  }
  if (compareApi(server, oldestApi) < 0) {
    throw new SallyportError(
      'engine_too_old',
      `the engine at ${endpoint} speaks API ${server}; at least ${oldestApi} is needed`,
      { details: { endpoint, apiVersion: server } },
    );
  }
  return compareApi(server, newestApi) < 0 ? server : newestApi;
}

/** A dead local socket must not hold up discovery; a remote engine may need an ssh log-in. */
function pingTimeoutMs(endpoint: Endpoint): number {
  return endpoint.kind === 'unix' ? 3_000 : 15_000;
}

export async function connect(endpoint: Endpoint, options: CallOptions = {}): Promise<EngineConnection> {
  const name = describeEndpoint(endpoint);
  const transport = openTransport(endpoint);
  const answer = await ping(new EngineConnection(transport, name), {
    timeoutMs: pingTimeoutMs(endpoint),
    ...options,
  });
  return new EngineConnection(transport, name, negotiateApi(answer.apiVersion, name));
}
