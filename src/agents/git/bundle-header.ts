/**
 * The head of a git bundle: which references it has and what it needs. Pure.
 *
 * SECURITY: it was written inside a sandbox. What is not exactly what we asked for is refused: a bundle that says it is filtered
 * would make git accept that objects are missing.
 */

import { SallyportError } from '../../protocol/errors.ts';

export interface BundleHeader {
  /** Where the pack begins. */
  readonly bytes: number;
  readonly prerequisites: readonly string[];
  readonly references: readonly { readonly name: string; readonly object: string }[];
}

export const mostHeaderBytes = 2 ** 20;
const mostReferences = 200;
const mostPrerequisites = 1000;

/** Undefined: it goes on beyond these bytes. */
export function readBundleHeader(start: Buffer, objectFormat: 'sha1' | 'sha256'): BundleHeader | undefined {
  const end = start.indexOf('\n\n');
  if (end === -1) {
    if (start.length >= mostHeaderBytes) throw refused('its head is longer than a megabyte');
    return undefined;
  }
  const [signature, ...lines] = start.subarray(0, end).toString('latin1').split('\n');
  if (signature !== '# v2 git bundle' && signature !== '# v3 git bundle') throw refused('it is no bundle');
  const length = objectFormat === 'sha1' ? 40 : 64;
  const prerequisites: string[] = [];
  const references: { readonly name: string; readonly object: string }[] = [];
  for (const line of lines) {
    if (line.startsWith('@')) requireCapability(line, signature, objectFormat);
    else if (line.startsWith('-')) prerequisites.push(objectIn(line.slice(1), length));
    else {
      const name = line.slice(length + 1);
      if (line[length] !== ' ' || name === '') throw refused('a line of its head is no reference');
      references.push({ object: objectIn(line, length), name: Buffer.from(name, 'latin1').toString('utf8') });
    }
  }
  if (prerequisites.length > mostPrerequisites)
    throw refused(`it needs ${prerequisites.length} other commits`);
  if (references.length > mostReferences) throw refused(`it has ${references.length} references`);
  return { bytes: end + 2, prerequisites, references };
}

function requireCapability(line: string, signature: string, objectFormat: string): void {
  if (signature === '# v3 git bundle' && line === `@object-format=${objectFormat}`) return;
  throw refused(`it asks for something that is not allowed (${JSON.stringify(line.slice(0, 60))})`);
}

function objectIn(text: string, length: number): string {
  const object = text.slice(0, length);
  const isWhole = object.length === length && /^[0-9a-f]+$/.test(object);
  if (!isWhole || /^[0-9a-f]/.test(text.slice(length, length + 1)))
    throw refused('its hashes are of another kind');
  return object;
}

export function refused(why: string): SallyportError {
  return new SallyportError('commits_refused', `the commits of the sandbox were not taken: ${why}`);
}
