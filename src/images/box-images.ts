/** Images as sandboxes use them: found, pulled on first use, and with the sandbox's user in them. */

import { SallyportError } from '../protocol/errors.ts';
import { label } from '../protocol/labels.ts';
import type {
  BoxHome,
  BoxImages,
  ImageChoice,
  ImageEngine,
  ImageFacts,
  ProvidedImage,
  ProvideOptions,
} from '../sandboxes/ports.ts';
import { pruneDerived, removeDerived } from './derived-images.ts';
import { defaultImageReference } from './ensure-image.ts';
import type { ProvisionGate } from './gate.ts';
import type { ProjectImages } from './project/project-images.ts';
import { provisionVersion } from './provision.ts';
import { pullBase } from './pull-base.ts';
import type { RegistryCredentials } from './registry-credentials.ts';
import { isThere, makeUserImage, requireUser, userImageKey } from './user-image.ts';

/** What `sally provision` gives a name to, for sandboxes that name none. */
const chosenBase = 'sallyport-base:latest';

/** The name is also had by the plain base image of any version, which is found by its hash instead. */
function isChosen({ labels }: ImageFacts): boolean {
  if (labels[label.owned] !== 'true') return false;
  return labels[label.kind] === 'image-template' || labels[label.provisioned] === String(provisionVersion);
}

/** An agent's image, made where it is missing. */
export type ImageTemplate = (options: ProvideOptions) => Promise<ProvidedImage>;

/** Each may be absent: then there are no such images. */
export interface BoxImageSources {
  readonly projects?: ProjectImages;
  /** By the name of the agent. */
  readonly templates?: ReadonlyMap<string, ImageTemplate>;
  readonly credentials?: RegistryCredentials;
  readonly gate?: ProvisionGate;
}

export class EngineBoxImages implements BoxImages {
  readonly #engine: ImageEngine;
  readonly #sources: BoxImageSources;
  /** By reference. One making at a time, whoever waits for it. */
  readonly #making = new Map<string, Promise<void>>();

  constructor(engine: ImageEngine, sources: BoxImageSources = {}) {
    this.#engine = engine;
    this.#sources = sources;
  }

  async provide(choice: ImageChoice, options: ProvideOptions): Promise<ProvidedImage> {
    return await this.#passed(await this.#found(choice, options), options);
  }

  async #found(choice: ImageChoice, options: ProvideOptions): Promise<ProvidedImage> {
    const { image, workspace, agent, fallback } = choice;
    if (image !== undefined) return await this.#named(image, options);
    const own = workspace === undefined ? undefined : await this.#project(workspace, choice, options);
    if (own !== undefined) return own;
    if (agent !== undefined) return await this.#ofAgent(agent, options);
    return fallback === undefined ? await this.#base(options.signal) : await this.#named(fallback, options);
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

  async #project(
    folder: string,
    { approvedDockerfile: approved, build = {}, built }: ImageChoice,
    options: ProvideOptions,
  ): Promise<ProvidedImage | undefined> {
    const before = built === undefined ? undefined : await this.#engine.find(built.id, options.signal);
    if (built !== undefined && before !== undefined) return { ...built, env: before.env };
    return await this.#sources.projects?.resolve({ folder, approved, ...build }, options);
  }

  async #ofAgent(agent: string, options: ProvideOptions): Promise<ProvidedImage> {
    const { templates = new Map<string, ImageTemplate>() } = this.#sources;
    const template = templates.get(agent);
    if (template !== undefined) return await template(options);
    const known = [...templates.keys()].sort();
    throw new SallyportError('image_missing', `there is no image for the agent ${JSON.stringify(agent)}`, {
      details: { agent, known },
      advice:
        known.length === 0 ? 'Name an image (`--image`).' : `Name an image, or one of ${known.join(', ')}.`,
    });
  }

  /** What the gate let through: the same image, or the one that was made of it. */
  async #passed(image: ProvidedImage, { progress, note, signal }: ProvideOptions): Promise<ProvidedImage> {
    const { gate } = this.#sources;
    if (gate === undefined || gate.isSettled(image.id)) return image;
    const facts = await this.#engine.find(image.id, signal);
    if (facts === undefined) return image;
    const id = await gate.pass(facts, image.reference, {
      progress,
      ...(note === undefined ? {} : { warn: (message) => note('image_unprovisioned', message) }),
    });
    return { ...image, id };
  }

  async #base(signal: AbortSignal | undefined): Promise<ProvidedImage> {
    const chosen = await this.#engine.find(chosenBase, signal);
    if (chosen !== undefined && isChosen(chosen)) {
      return { reference: chosenBase, id: chosen.id, env: chosen.env };
    }
    const reference = await defaultImageReference('base', await this.#engine.architecture(signal));
    const facts = await this.#engine.find(reference, signal);
    if (facts !== undefined) return { reference, id: facts.id, env: facts.env };
    throw new SallyportError('image_missing', `the base image ${reference} is not on this engine`, {
      details: { image: reference },
      advice: 'Run `sally image bootstrap` to make it, or name an image.',
    });
  }

  async #named(name: string, { progress, signal }: ProvideOptions): Promise<ProvidedImage> {
    const tagged = /:[^/]+$|@/.test(name) ? name : `${name}:latest`;
    let facts = await this.#engine.find(name, signal);
    // An id is no name that a registry knows, and gets no tag.
    if (facts?.id.startsWith(`sha256:${name}`)) return { reference: facts.id, id: facts.id, env: facts.env };
    if (facts === undefined) {
      const { credentials } = this.#sources;
      await pullBase(tagged, { engine: this.#engine, progress, signal, credentials });
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
