/** What becomes of the images that were made for users when the image below them goes. They are a cache: each can be made again. */

import { isSallyportError } from '../protocol/errors.ts';
import { label } from '../protocol/labels.ts';
import type { ImageEngine, ListedImage } from '../sandboxes/ports.ts';

/** Removes those made of this image. One that a container uses stays. Returns how many went. */
export async function removeDerived(engine: ImageEngine, imageId: string): Promise<number> {
  const derived = await engine.listOwned('image-user');
  return await removeUnused(
    engine,
    derived.filter((image) => image.labels[label.base] === imageId),
  );
}

/** Removes those that `staleDerived` finds. */
export async function pruneDerived(engine: ImageEngine): Promise<number> {
  return await removeUnused(engine, await staleDerived(engine));
}

/** Those whose own image is gone or has lost its last name, and those that have no name themselves. */
export async function staleDerived(engine: ImageEngine): Promise<readonly ListedImage[]> {
  const gone: ListedImage[] = [];
  // Many are made of one image, which is looked for once.
  const goneBases = new Map<string, boolean>();
  for (const image of await engine.listOwned('image-user')) {
    const base = image.labels[label.base] ?? image.id;
    const isGone = goneBases.get(base) ?? (await isWithoutName(engine, base));
    goneBases.set(base, isGone);
    if (isGone || isNameless(image)) gone.push(image);
  }
  return gone;
}

/** An engine keeps an image without a name as long as another is made of it. */
async function isWithoutName(engine: ImageEngine, id: string): Promise<boolean> {
  const found = await engine.find(id);
  return found === undefined || isNameless(found);
}

function isNameless(image: ListedImage): boolean {
  return image.tags.length === 0 && image.digests.length === 0;
}

async function removeUnused(engine: ImageEngine, images: readonly ListedImage[]): Promise<number> {
  let removed = 0;
  for (const image of images) {
    try {
      for (const reference of image.tags.length === 0 ? [image.id] : image.tags) {
        await engine.remove(reference);
      }
      removed += 1;
    } catch (error) {
      if (!isSallyportError(error, 'engine_conflict')) throw error;
    }
  }
  return removed;
}
