import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { imagePath } from '../wire/path-segment.ts';

export async function tagImage(
  connection: EngineConnection,
  image: string,
  target: { readonly repository: string; readonly tag: string },
  options: CallOptions = {},
): Promise<void> {
  await connection.json<void>({
    method: 'POST',
    path: `/images/${imagePath(image)}/tag`,
    query: { repo: target.repository, tag: target.tag },
    notFound: 'image_missing',
    ...options,
  });
}
