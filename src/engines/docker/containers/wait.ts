import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** Resolves with the exit code when the container is not running any more. The caller chooses how long that may take. */
export async function waitForExit(
  connection: EngineConnection,
  id: string,
  options: CallOptions & { readonly timeoutMs: number },
): Promise<number> {
  return await connection.json<{ StatusCode: number }, number>(
    {
      method: 'POST',
      path: `/containers/${pathSegment(id)}/wait`,
      query: { condition: 'not-running' },
      ...options,
    },
    (answer) => answer.StatusCode,
  );
}
