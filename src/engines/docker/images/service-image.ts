import type { ServiceImage } from '../../../sandboxes/ports/services.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { imagePath } from '../wire/path-segment.ts';

interface ImageBody {
  readonly Config?: {
    readonly User?: string | null;
    readonly Healthcheck?: { readonly Test?: readonly string[] | null } | null;
  } | null;
}

/** What an image says of who it runs as, and of how to tell that it works. */
export async function inspectServiceImage(
  connection: EngineConnection,
  reference: string,
  options: CallOptions = {},
): Promise<ServiceImage> {
  return await connection.json<ImageBody, ServiceImage>(
    { method: 'GET', path: `/images/${imagePath(reference)}/json`, notFound: 'image_missing', ...options },
    ({ Config }) => {
      const check = Config?.Healthcheck?.Test ?? [];
      return { user: Config?.User ?? '', ...(check.length === 0 ? {} : { check }) };
    },
  );
}
