import { isSallyportError } from '../../../protocol/errors.ts';
import type { ImageFacts } from '../../../sandboxes/ports.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { imagePath } from '../wire/path-segment.ts';

interface ImageBody {
  readonly Id: string;
  readonly RepoTags?: string[] | null;
  readonly RepoDigests?: string[] | null;
  readonly Size: number;
  readonly Architecture: string;
  readonly Config?: {
    readonly Labels?: Record<string, string> | null;
    readonly Env?: string[] | null;
    readonly Entrypoint?: string[] | null;
    readonly Cmd?: string[] | null;
  } | null;
}

export async function inspectImage(
  connection: EngineConnection,
  reference: string,
  options: CallOptions = {},
): Promise<ImageFacts> {
  return await connection.json<ImageBody, ImageFacts>(
    {
      method: 'GET',
      path: `/images/${imagePath(reference)}/json`,
      notFound: 'image_missing',
      ...options,
    },
    (body) => ({
      id: body.Id,
      tags: body.RepoTags ?? [],
      digests: body.RepoDigests ?? [],
      labels: body.Config?.Labels ?? {},
      sizeBytes: body.Size,
      architecture: body.Architecture,
      env: environment(body.Config?.Env ?? []),
    }),
  );
}

export async function findImage(
  connection: EngineConnection,
  reference: string,
  options: CallOptions = {},
): Promise<ImageFacts | undefined> {
  try {
    return await inspectImage(connection, reference, options);
  } catch (error) {
    if (isSallyportError(error, 'image_missing')) return undefined;
    throw error;
  }
}

/** Whether a container can be made of it without saying what shall run. */
export async function imageHasCommand(
  connection: EngineConnection,
  reference: string,
  options: CallOptions = {},
): Promise<boolean> {
  return await connection.json<ImageBody, boolean>(
    { method: 'GET', path: `/images/${imagePath(reference)}/json`, notFound: 'image_missing', ...options },
    ({ Config }) => [...(Config?.Entrypoint ?? []), ...(Config?.Cmd ?? [])].length > 0,
  );
}

function environment(lines: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf('=');
      return at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at + 1)];
    }),
  );
}
