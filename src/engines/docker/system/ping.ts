import type { CallOptions, EngineConnection } from '../wire/connection.ts';

export interface Ping {
  readonly apiVersion: string;
  readonly osType: string;
  readonly isPodman: boolean;
}

/** The cheapest proof that an engine answers, and the source of its API version. Unversioned by design. */
export async function ping(connection: EngineConnection, options: CallOptions = {}): Promise<Ping> {
  const response = await connection.stream({
    method: 'GET',
    path: '/_ping',
    notFound: 'engine_protocol',
    ...options,
  });
  response.resume();
  const header = (name: string): string => {
    const value = response.headers[name];
    return typeof value === 'string' ? value : '';
  };
  return {
    apiVersion: header('api-version'),
    osType: header('ostype') || 'linux',
    isPodman: header('libpod-api-version') !== '',
  };
}
