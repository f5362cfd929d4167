/**
 * What an image is made from, as a list of named digests, and the fingerprint over it. Names say what a person would look
 * for: `dockerfile`, `file:src/a.txt`, `arg:VERSION`, `platform`, `base:debian:bookworm-slim`, `provision`, `porter`.
 */

import { createHash } from 'node:crypto';

export interface ImageInput {
  readonly name: string;
  readonly digest: string;
}

export interface ChangedInputs {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
}

/** The same for the same inputs in any order, on any machine. */
export function fingerprint(inputs: readonly ImageInput[]): string {
  // Lengths, so that no name can pass for a digest or for two names. As one text: a call for each line costs more than hashing it.
  let lines = '';
  for (const { name, digest } of inputs.toSorted((a, b) => order(a.name, b.name)))
    lines += `${Buffer.byteLength(name)}:${name}=${Buffer.byteLength(digest)}:${digest}\n`;
  return createHash('sha256').update(lines).digest('hex');
}

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

export function changedInputs(before: readonly ImageInput[], after: readonly ImageInput[]): ChangedInputs {
  const old = new Map(before.map(({ name, digest }) => [name, digest]));
  const now = new Map(after.map(({ name, digest }) => [name, digest]));
  return {
    added: [...now.keys()].filter((name) => !old.has(name)),
    removed: [...old.keys()].filter((name) => !now.has(name)),
    changed: [...now]
      .filter(([name, digest]) => old.has(name) && old.get(name) !== digest)
      .map(([name]) => name),
  };
}
