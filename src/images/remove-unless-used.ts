import { isSallyportError } from '../protocol/errors.ts';
import type { ImageEngine } from '../sandboxes/ports.ts';

/** A sandbox may still run on it, or another image be built on it: then it is not ours to remove. */
export async function removeUnlessUsed(engine: ImageEngine, reference: string): Promise<void> {
  try {
    await engine.remove(reference);
  } catch (error) {
    if (!isSallyportError(error, 'engine_conflict')) throw error;
  }
}
