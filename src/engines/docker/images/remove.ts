import { isSallyportError } from '../../../protocol/errors.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { imagePath } from '../wire/path-segment.ts';

/** Removes a tag, or an image by id if nothing else names it. Absent is not an error. */
export async function removeImage(
  connection: EngineConnection,
  reference: string,
  options: CallOptions = {},
): Promise<void> {
  try {
    await connection.json<unknown>({
      method: 'DELETE',
      path: `/images/${imagePath(reference)}`,
      timeoutMs: 60_000,
      ...options,
    });
  } catch (error) {
    if (!isSallyportError(error, 'engine_not_found')) throw error;
  }
}
