/**
 * Builds once more, without the builder's cache, where an image of that cache was removed while the builder looked at it. The
 * classic builder goes through all that was ever built on the same base, and fails when one of them goes meanwhile; what it was
 * asked to build has nothing to do with it.
 */

import { isSallyportError } from '../protocol/errors.ts';

export async function buildPastCache(
  build: (noCache: boolean) => Promise<string>,
  { noCache, say }: { readonly noCache: boolean; readonly say: (message: string) => void },
): Promise<string> {
  try {
    return await build(noCache);
  } catch (error) {
    if (noCache || !isSallyportError(error, 'build_cache_changed')) throw error;
    say('an image of the builder’s cache was removed meanwhile; building once more without the cache');
    return await build(true);
  }
}
