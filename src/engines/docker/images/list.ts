import type { ListedImage } from '../../../sandboxes/ports.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { carriesLabel, labelFilter } from '../wire/filters.ts';

interface ListBody {
  readonly Id: string;
  readonly RepoTags: string[] | null;
  readonly RepoDigests: string[] | null;
  readonly Labels: Record<string, string> | null;
  readonly Size: number;
}

export async function listImages(
  connection: EngineConnection,
  labels: readonly [string, ...string[]],
  options: CallOptions = {},
): Promise<readonly ListedImage[]> {
  return await connection.json<ListBody[], readonly ListedImage[]>(
    {
      method: 'GET',
      path: '/images/json',
      // Podman finds nothing by two labels; the first narrows it down, and all are looked at here.
      query: { filters: labelFilter(labels.slice(0, 1)) },
      ...options,
    },
    (rows) =>
      rows
        .map((row) => ({
          id: row.Id,
          tags: named(row.RepoTags),
          digests: named(row.RepoDigests),
          labels: row.Labels ?? {},
          sizeBytes: row.Size,
        }))
        .filter((image) => labels.every((wanted) => carriesLabel(image.labels, wanted))),
  );
}

/** Older engines write something where there is nothing. */
const named = (names: readonly string[] | null): readonly string[] =>
  (names ?? []).filter((name) => !name.startsWith('<none>'));
