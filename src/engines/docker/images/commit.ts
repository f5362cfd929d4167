import type { CallOptions, EngineConnection } from '../wire/connection.ts';

/** Makes an image of a container and tags it in one step. `changes` are Dockerfile lines, each understood by itself. */
export async function commitContainer(
  connection: EngineConnection,
  container: string,
  request: {
    readonly repository: string;
    readonly tag: string;
    readonly changes: readonly string[];
    /** What takes precedence over the container's own configuration. */
    readonly config?: { readonly Entrypoint?: readonly string[] };
  },
  options: CallOptions = {},
): Promise<void> {
  const query = new URLSearchParams({
    container,
    repo: request.repository,
    tag: request.tag,
    pause: '0',
  });
  for (const change of request.changes) query.append('changes', change);
  await connection.json<unknown>({
    method: 'POST',
    path: `/commit?${query}`,
    // Podman wants a configuration, though an empty one changes nothing.
    body: request.config ?? {},
    timeoutMs: 120_000,
    ...options,
  });
}
