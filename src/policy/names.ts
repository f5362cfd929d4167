/** Names of sandboxes: by their workspace, or made up. Pure; chance is handed in as bytes. */

import { createHash } from 'node:crypto';
import { adjectives, nouns } from './name-words.ts';

const longestName = 63;
const hashLength = 8;

/** The same folder has the same name in every session, and two folders of one base name have two (G1). */
export function workspaceName(realPath: string): string {
  const hash = createHash('md5').update(realPath).digest('hex').slice(0, hashLength);
  const base = realPath.slice(realPath.lastIndexOf('/') + 1);
  return `${sanitizedName(base, longestName - hashLength - 1)}-${hash}`;
}

/** Two words and a number; four bytes decide it. */
export function randomName(bytes: Uint8Array): string {
  const [first, second, high, low] = bytes;
  if (first === undefined || second === undefined || high === undefined || low === undefined) {
    throw new RangeError(`4 bytes make a name, not ${bytes.length}`);
  }
  const number = String((high * 256 + low) % 1000).padStart(3, '0');
  return `${adjectives[first % adjectives.length]}-${nouns[second % nouns.length]}-${number}`;
}

/** The nearest thing to `text` that may be part of a name: never empty, begins and ends with a letter or a digit. */
export function sanitizedName(text: string, longest: number = longestName): string {
  const plain = text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9_.-]+/g, '-')
    .replace(/[-_.]{2,}/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, longest)
    .replace(/[^a-z0-9]+$/, '');
  return plain === '' ? 'box' : plain;
}
