import { SallyportError } from '../../../protocol/errors.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';

/**
 * The engine's own clock at the moment of the call, in milliseconds since 1970: never later, and earlier by as much as
 * the answer took. A remote engine, or one in a virtual machine, need not agree with the clock here.
 */
export async function engineTime(connection: EngineConnection, options: CallOptions = {}): Promise<number> {
  const calledMs = performance.now();
  const timeMs = await connection.json<{ SystemTime: string }, number>(
    { method: 'GET', path: '/info', ...options },
    (body) => Date.parse(body.SystemTime),
  );
  if (!Number.isFinite(timeMs)) {
    throw new SallyportError('engine_protocol', `the engine at ${connection.endpoint} tells no time`, {
      details: { endpoint: connection.endpoint },
    });
  }
  return Math.floor(timeMs - (performance.now() - calledMs));
}
