/**
 * The images of ours that an engine has: which there are, what uses them, and which may go. An image is a cache, but one that takes
 * minutes to make, so only what is superseded goes by itself.
 */

import { existsSync } from 'node:fs';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import { label } from '../protocol/labels.ts';
import type { ImageEngine, ListedImage } from '../sandboxes/ports.ts';
import { removeDerived, staleDerived } from './derived-images.ts';
import type { ImageRecords } from './ports.ts';

export interface CatalogueDeps {
  readonly engine: ImageEngine;
  readonly records: ImageRecords;
  /** Whose images may be pruned. */
  readonly owner: string;
  /** Every sandbox that is known, running or not. */
  readonly sandboxes: () => readonly { readonly name: string; readonly imageId?: string | undefined }[];
}

export interface OwnedImage {
  /** Undefined: it has lost its name. */
  readonly reference?: string;
  readonly id: string;
  readonly kind: string;
  readonly sizeBytes: number;
  /** The folder whose last build it is. */
  readonly folder?: string;
  readonly usedBy: readonly string[];
}

export interface PrunedImage {
  readonly reference: string;
  readonly sizeBytes: number;
  readonly why: string;
  readonly removed: boolean;
}

export class ImageCatalogue {
  readonly #deps: CatalogueDeps;

  constructor(deps: CatalogueDeps) {
    this.#deps = deps;
  }

  async list(): Promise<readonly OwnedImage[]> {
    const folders = this.#folders();
    return (await this.#deps.engine.listOwned()).filter(isMadeByUs).map((facts) => {
      const folder = folders.get(facts.id);
      const reference = nameOf(facts);
      return {
        ...(reference === undefined ? {} : { reference }),
        id: facts.id,
        kind: (facts.labels[label.kind] ?? '').replace(/^image-/, ''),
        sizeBytes: facts.sizeBytes,
        usedBy: this.#usedBy(facts),
        ...(folder === undefined ? {} : { folder }),
      };
    });
  }

  /** With what was made of it for users. One that a sandbox needs stays, and that is an error. */
  async remove(reference: string): Promise<void> {
    const { engine, records } = this.#deps;
    const facts = await engine.find(reference);
    if (facts === undefined)
      throw new SallyportError('image_missing', `${reference} is not on this engine`, {
        details: { image: reference },
        advice: '`sally image ls` shows the images that are there.',
      });
    if (!isMadeByUs(facts))
      throw new SallyportError('refused_by_policy', `${reference} is no image of Sallyport's`, {
        details: { image: reference },
        advice: `Remove it with your engine's own command: \`docker image rm ${reference}\`.`,
      });
    const users = this.#usedBy(facts);
    if (users.length > 0) throw inUse(reference, users);
    await removeDerived(engine, facts.id);
    try {
      await this.#removeWhole(facts);
    } catch (error) {
      if (!isSallyportError(error, 'engine_conflict')) throw error;
      throw inUse(reference, [], error);
    }
    const record = records.builds().find(({ imageId }) => imageId === facts.id);
    if (record !== undefined) records.forgetBuild(record.folder);
  }

  /** Builds that a later one replaced, those of folders that are gone, and copies for users whose image is gone. */
  async prune({ dryRun }: { readonly dryRun: boolean }): Promise<readonly PrunedImage[]> {
    const { engine } = this.#deps;
    const report: PrunedImage[] = [];
    for (const facts of await engine.listOwned('image-project')) {
      const why = this.#whyGone(facts);
      if (why === undefined) continue;
      const removed = !dryRun && (await this.#removeUnlessUsed(facts));
      report.push({ reference: nameOf(facts) ?? facts.id, sizeBytes: facts.sizeBytes, why, removed });
    }
    for (const facts of await staleDerived(engine)) {
      const removed = !dryRun && (await this.#removeUnlessUsed(facts));
      const why = 'the image that it was made of is gone';
      report.push({ reference: nameOf(facts) ?? facts.id, sizeBytes: facts.sizeBytes, why, removed });
    }
    if (!dryRun) this.#forgetGone();
    return report;
  }

  #whyGone(facts: ListedImage): string | undefined {
    if (facts.labels[label.owner] !== this.#deps.owner || this.#usedBy(facts).length > 0) return undefined;
    if (nameOf(facts) === undefined) return 'it was built again';
    const folder = this.#folders().get(facts.id);
    if (folder === undefined) return 'it is not the last build of any folder';
    return existsSync(folder) ? undefined : `its folder ${folder} is gone`;
  }

  #forgetGone(): void {
    const { records } = this.#deps;
    for (const { folder } of records.builds()) if (!existsSync(folder)) records.forgetBuild(folder);
  }

  async #removeUnlessUsed(facts: ListedImage): Promise<boolean> {
    await removeDerived(this.#deps.engine, facts.id);
    try {
      await this.#removeWhole(facts);
      return true;
    } catch (error) {
      if (!isSallyportError(error, 'engine_conflict')) throw error;
      return false;
    }
  }

  async #removeWhole({ id, tags }: ListedImage): Promise<void> {
    for (const reference of tags.length === 0 ? [id] : tags) await this.#deps.engine.remove(reference);
  }

  /** By the id of the image. */
  #folders(): ReadonlyMap<string, string> {
    return new Map(this.#deps.records.builds().map(({ imageId, folder }) => [imageId, folder]));
  }

  #usedBy({ id, labels }: ListedImage): readonly string[] {
    const own = labels[label.kind] === 'image-user' ? labels[label.base] : id;
    return this.#deps
      .sandboxes()
      .filter(({ imageId }) => imageId === own)
      .map(({ name }) => name);
  }
}

/** An image that somebody built on one of ours inherits its labels; but it has a name that we never give, or none of ours. */
const isMadeByUs = (facts: ListedImage): boolean => facts.tags.length === 0 || nameOf(facts) !== undefined;

const nameOf = ({ tags }: ListedImage): string | undefined =>
  tags.find((tag) => tag.startsWith('sallyport-') && !tag.endsWith(':latest')) ??
  tags.find((tag) => tag.startsWith('sallyport-'));

function inUse(reference: string, users: readonly string[], cause?: unknown): SallyportError {
  const by = users.length === 0 ? 'another image or container' : users.join(', ');
  return new SallyportError('image_in_use', `${reference} is needed by ${by}`, {
    details: { image: reference, sandboxes: [...users] },
    cause,
  });
}
