/**
 * The gate before an image of ours is used (G9, G10): it must have the marker of this version and keep what it promises.
 * One that does not is told of loudly and provisioned once more; if it still does not, it is refused and stays unmarked.
 *
 * An image is looked at once for each id: what an id names never changes. Images of others pass, nothing was promised.
 */

import type { Progress } from '../lib/progress.ts';
import { isSallyportError } from '../protocol/errors.ts';
import { label } from '../protocol/labels.ts';
import type { ImageEngine, ImageFacts } from '../sandboxes/ports.ts';
import { buildTemplate, type TaggedAs, unprovisioned } from './build-template.ts';
import { checkPromises } from './check-promises.ts';
import { removeDerived } from './derived-images.ts';
import { removeUnlessUsed } from './remove-unless-used.ts';
import {
  readBaseTemplate,
  readTemplate,
  type Template,
  type TemplatePlace,
  templatePlace,
} from './template.ts';

/** The ids that passed. Forgetting costs a look, so nothing depends on it. */
export interface PassedImages {
  has(id: string): boolean;
  add(id: string): void;
}

export interface GateParts {
  readonly engine: ImageEngine;
  readonly passed: PassedImages;
  /** For the log of who runs this. */
  readonly report: (message: string) => void;
  /** Where a template's files are (default: in the package). */
  readonly placeOf?: (name: string) => TemplatePlace;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface PassOptions {
  readonly progress: Progress;
  /** For who asked for the sandbox. */
  readonly warn?: (message: string) => void;
}

export class ProvisionGate {
  readonly #parts: GateParts;
  /** By id. Whoever comes second waits for the first. */
  readonly #looking = new Map<string, Promise<string>>();
  /** Ids of images that promise nothing. */
  readonly #strangers = new Set<string>();

  constructor(parts: GateParts) {
    this.#parts = parts;
  }

  /** Whether there is nothing left to look at, so that nobody need ask the engine about it. */
  isSettled(id: string): boolean {
    return this.#parts.passed.has(id) || this.#strangers.has(id);
  }

  /** The id of the image to use: the same, or the one that was made of it. Not cancelled: others may wait for the same. */
  async pass(image: ImageFacts, reference: string, options: PassOptions): Promise<string> {
    const { passed } = this.#parts;
    if (!isPromised(image)) this.#strangers.add(image.id);
    if (this.isSettled(image.id)) return image.id;
    let looking = this.#looking.get(image.id);
    if (looking === undefined) {
      looking = this.#look(image, reference, options).finally(() => this.#looking.delete(image.id));
      this.#looking.set(image.id, looking);
    }
    const id = await looking;
    passed.add(id);
    return id;
  }

  async #look(image: ImageFacts, reference: string, options: PassOptions): Promise<string> {
    const { engine, labels } = this.#parts;
    const template = await this.#templateOf(image);
    options.progress({ step: 'verify', message: `trying what ${reference} promises` });
    const promises = template?.promises ?? 'own';
    const broken = await checkPromises(engine, { image: image.id, promises, marker: true, labels });
    if (broken.length === 0) return image.id;
    const what = `${reference} does not keep what it promises (${broken.slice(0, 3).join(' · ')})`;
    if (template === undefined) {
      this.#warn(`${what}, and another version made it`, options);
      throw unprovisioned(reference, broken, undefined, 'Make it anew with this version: `sally provision`.');
    }
    this.#warn(`${what}; it is provisioned again`, options);
    return await this.#heal(image, reference, template, options);
  }

  async #heal(
    image: ImageFacts,
    reference: string,
    template: Template,
    { progress }: PassOptions,
  ): Promise<string> {
    const { engine, labels } = this.#parts;
    let id: string;
    try {
      id = await buildTemplate(image.id, template, firstNameOf(image) ?? template, {
        engine,
        progress,
        needsNetwork: true,
        // What an earlier try left in the builder's cache is what failed.
        freshness: new Date().toISOString(),
        labels,
      });
    } catch (error) {
      if (!isSallyportError(error, 'image_build_failed')) throw error;
      throw unprovisioned(reference, [error.message], error);
    }
    // Each name by which it could be asked for; they would lead to the broken one for ever.
    for (const { repository, tag } of image.tags.map(splitName)) await engine.tag(id, repository, tag);
    await removeDerived(engine, image.id);
    await removeUnlessUsed(engine, image.id);
    return id;
  }

  /** Undefined: this version has no recipe for it, so it can be looked at and not made again. */
  async #templateOf(image: ImageFacts): Promise<Template | undefined> {
    const { placeOf = templatePlace } = this.#parts;
    const { [label.kind]: kind, [label.template]: name, [label.inputs]: inputs } = image.labels;
    let template: Template;
    try {
      template =
        kind === 'image-base'
          ? await readBaseTemplate(image.architecture)
          : await readTemplate(placeOf(name ?? ''), image.architecture);
    } catch (error) {
      if (isSallyportError(error, 'template_unknown')) return undefined;
      throw error;
    }
    return template.inputs === inputs ? template : undefined;
  }

  #warn(message: string, { progress, warn }: PassOptions): void {
    this.#parts.report(message);
    progress({ step: 'verify', message });
    warn?.(message);
  }
}

function firstNameOf({ tags }: ImageFacts): TaggedAs | undefined {
  const [first] = tags;
  return first === undefined ? undefined : splitName(first);
}

function splitName(name: string): TaggedAs {
  const at = name.lastIndexOf(':');
  return { repository: name.slice(0, at), tag: name.slice(at + 1) };
}

function isPromised({ labels }: ImageFacts): boolean {
  const kind = labels[label.kind];
  return labels[label.owned] === 'true' && (kind === 'image-base' || kind === 'image-template');
}
