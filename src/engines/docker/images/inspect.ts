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
  readonly Config?: { readonly Labels?: Record<string, string> | null } | null;
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
