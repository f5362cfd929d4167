import type { CallOptions, EngineConnection } from '../wire/connection.ts';

/** Resolves with the exit code when the container is not running any more. The caller chooses how long that may take. */
export async function waitForExit(
  connection: EngineConnection,
  id: string,
  options: CallOptions & { readonly timeoutMs: number },
): Promise<number> {
  const answer = await connection.json<{ StatusCode: number }>({
    method: 'POST',
    path: `/containers/${id}/wait`,
    query: { condition: 'not-running' },
    ...options,
  });
  return answer.StatusCode;
}
