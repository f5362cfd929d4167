/**
 * The images that a project's image is built on: there, pulled where they are missing, and asked for again when our own record of
 * the last look is a week old (R3). Dates inside images are not looked at: they say when a layer was made, not when it was current.
 */

import { label } from '../../protocol/labels.ts';
import type { ImageEngine, ImageFacts } from '../../sandboxes/ports.ts';
import type { ImageInput } from '../inputs.ts';
import type { BaseCheck, ImageRecords } from '../ports.ts';
import { isWorthAnotherWay, type PullOptions, pullBase } from '../pull-base.ts';

const staleMs = 7 * 24 * 3600_000;
/** A registry that did not answer is asked again after this time, not at every start. */
const retryMs = 3600_000;

export interface BaseOptions extends PullOptions {
  readonly records: ImageRecords;
  readonly now: () => Date;
  /** Ask for all of them, whatever the record says. */
  readonly refresh: boolean;
  readonly note: (code: string, message: string) => void;
}

export async function provideBases(
  references: readonly string[],
  options: BaseOptions,
): Promise<readonly ImageInput[]> {
  const inputs: ImageInput[] = [];
  for (const reference of references)
    inputs.push(baseInput(reference, await provideBase(reference, options)));
  return inputs;
}

/** As they are now; nothing is pulled. */
export async function lookAtBases(
  engine: ImageEngine,
  references: readonly string[],
): Promise<readonly ImageInput[]> {
  return await Promise.all(
    references.map(async (reference) => baseInput(reference, await engine.find(tagged(reference)))),
  );
}

export const tagged = (reference: string): string =>
  /:[^/]+$|@/.test(reference) ? reference : `${reference}:latest`;

async function provideBase(reference: string, options: BaseOptions): Promise<ImageFacts | undefined> {
  const { engine, records, now, refresh, note, signal } = options;
  const name = tagged(reference);
  const found = await engine.find(name, signal);
  if (found === undefined) {
    await pullBase(name, options);
    records.saveBaseCheck(name, { checkedAt: now().toISOString() });
    return await engine.find(name, signal);
  }
  // What has no digest came from no registry, so there is nobody to ask. What is named by its digest never changes.
  if (found.digests.length === 0 || name.includes('@')) return found;
  const check = records.baseChecks()[name];
  if (check === undefined && !refresh) {
    // The first time that it is seen: the week begins.
    records.saveBaseCheck(name, { checkedAt: now().toISOString() });
    return found;
  }
  if (!refresh && check !== undefined && !isDue(check, now().getTime())) return found;
  try {
    await pullBase(name, options);
    records.saveBaseCheck(name, { checkedAt: now().toISOString() });
  } catch (error) {
    if (!isWorthAnotherWay(error)) throw error;
    const failedAt = now().toISOString();
    records.saveBaseCheck(name, { checkedAt: check?.checkedAt ?? failedAt, failedAt });
    note(
      'base_not_checked',
      `no registry was there to ask for a newer ${name}; the one that is here is used`,
    );
  }
  return await engine.find(name, signal);
}

function isDue({ checkedAt, failedAt }: BaseCheck, nowMs: number): boolean {
  const failedMs = failedAt === undefined ? Number.NEGATIVE_INFINITY : Date.parse(failedAt);
  return nowMs - Date.parse(checkedAt) > staleMs && nowMs - failedMs > retryMs;
}

/**
 * What our own image was made from. The label alone says nothing, because every image that is built on ours inherits it; the tag
 * beside it is given by us alone.
 */
function ownInputs({ labels, tags }: ImageFacts): string | undefined {
  const inputs = labels[label.inputs];
  if (inputs === undefined) return undefined;
  return tags.some((tag) => tag.startsWith('sallyport-') && tag.endsWith(`:${inputs.slice(0, 12)}`))
    ? inputs
    : undefined;
}

/**
 * The same on every machine where that is possible: a registry's digest, else what our own image was made from. The id of an image
 * that somebody built is of this engine alone.
 */
function baseInput(reference: string, facts: ImageFacts | undefined): ImageInput {
  const name = `base:${reference}`;
  if (facts === undefined) return { name, digest: 'missing' };
  const repository = tagged(reference).replace(/@.*$|:[^/:]+$/, '');
  const digests = [...facts.digests].sort();
  const digest = digests.find((each) => each.startsWith(`${repository}@`)) ?? digests[0];
  if (digest !== undefined) return { name, digest: digest.replace(/^.*@/, '') };
  const inputs = ownInputs(facts);
  return { name, digest: inputs === undefined ? `id:${facts.id}` : `inputs:${inputs}` };
}
