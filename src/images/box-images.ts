/** Images as sandboxes use them: found, pulled on first use, and with the sandbox's user in them. */

import { SallyportError } from '../protocol/errors.ts';
import type { BoxHome, BoxImages, ImageEngine, ProvidedImage } from '../sandboxes/ports.ts';
import { pruneDerived, removeDerived } from './derived-images.ts';
import { defaultImageReference } from './ensure-image.ts';
import { pullBase } from './pull-base.ts';
import { isThere, makeUserImage, requireUser, userImageKey } from './user-image.ts';

export class EngineBoxImages implements BoxImages {
  readonly #engine: ImageEngine;
  /** By reference. One making at a time, whoever waits for it. */
  readonly #making = new Map<string, Promise<void>>();

  constructor(engine: ImageEngine) {
    this.#engine = engine;
  }

  async provide(
    reference: string | undefined,
    options: Parameters<BoxImages['provide']>[1],
  ): Promise<ProvidedImage> {
    return reference === undefined ? await this.#base(options.signal) : await this.#named(reference, options);
  }

  async forUser(image: ProvidedImage, home: BoxHome, signal?: AbortSignal): Promise<string> {
    requireUser(home);
    const key = userImageKey(image.id, home);
    if (await isThere(this.#engine, key, signal)) return key.reference;
    let making = this.#making.get(key.reference);
    if (making === undefined) {
      // Without the caller's signal: others may wait for the same, and what was begun is cleared up only at its end.
      making = this.#make(image.id, home).finally(() => this.#making.delete(key.reference));
      this.#making.set(key.reference, making);
    }
    await orCancelled(making, signal);
    return key.reference;
  }

  /** For who removes the image itself. One that a container uses stays. Returns how many went. */
  async removeDerived(imageId: string): Promise<number> {
    return await removeDerived(this.#engine, imageId);
  }

  /** For now and then. Returns how many went. */
  async pruneDerived(): Promise<number> {
    return await pruneDerived(this.#engine);
  }

  async #base(signal: AbortSignal | undefined): Promise<ProvidedImage> {
    const reference = await defaultImageReference('base', await this.#engine.architecture(signal));
    const facts = await this.#engine.find(reference, signal);
    if (facts !== undefined) return { reference, id: facts.id, env: facts.env };
    throw new SallyportError('image_missing', `the base image ${reference} is not on this engine`, {
      details: { image: reference },
      advice: 'Run `sally image bootstrap` to make it, or name an image.',
    });
  }

  async #named(
    name: string,
    { progress, signal }: Parameters<BoxImages['provide']>[1],
  ): Promise<ProvidedImage> {
    const tagged = /:[^/]+$|@/.test(name) ? name : `${name}:latest`;
    let facts = await this.#engine.find(name, signal);
    // An id is no name that a registry knows, and gets no tag.
    if (facts?.id.startsWith(`sha256:${name}`)) return { reference: facts.id, id: facts.id, env: facts.env };
    if (facts === undefined) {
      await pullBase(tagged, { engine: this.#engine, progress, signal });
      facts = await this.#engine.find(tagged, signal);
    }
    if (facts !== undefined) return { reference: tagged, id: facts.id, env: facts.env };
    throw new SallyportError('image_missing', `${tagged} was pulled and is not on this engine`, {
      details: { image: tagged },
      advice: 'Somebody may have removed it; try again.',
    });
  }

  async #make(imageId: string, home: BoxHome): Promise<void> {
    const key = userImageKey(imageId, home);
    try {
      await makeUserImage(this.#engine, imageId, home, key);
    } catch (error) {
      // Another process took this one for dead, and has done it.
      if (await isThere(this.#engine, key)) return;
      throw error;
    }
  }
}

async function orCancelled(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return await work;
  let onAbort = (): void => {};
  const cancelled = new Promise<never>((_resolve, reject) => {
    onAbort = () =>
      reject(
        new SallyportError('cancelled', 'making an image for the user was not waited for', {
          cause: signal.reason,
        }),
      );
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  // Both are handled below; one that nobody waits for any more must not end the process.
  work.catch(() => {});
  try {
    await Promise.race([work, cancelled]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
