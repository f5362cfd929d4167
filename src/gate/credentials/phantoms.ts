/**
 * Phantoms: what a sandbox holds instead of a secret. Each is random, belongs to one sandbox and one secret, and is worth
 * nothing outside the gate. All have one mark in them, so one search finds any of them, also those of other sandboxes.
 */

import { randomInt } from 'node:crypto';

export const phantomMark = 'sallyphantom';
const tailCharacters = 24;
export const phantomBytes = phantomMark.length + tailCharacters;
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

export interface PhantomOwner {
  readonly sandbox: string;
  readonly secret: string;
}

/** `prefix` and 36 characters: with `ghp_` that is what a token of GitHub looks like. */
export function newPhantom(prefix: string): string {
  const tail = Array.from({ length: tailCharacters }, () => alphabet[randomInt(alphabet.length)]).join('');
  return `${prefix}${phantomMark}${tail}`;
}

/** All phantoms of a daemon: whose each is. */
export class PhantomRegistry {
  readonly #owners = new Map<string, PhantomOwner>();

  add(phantom: string, owner: PhantomOwner): void {
    this.#owners.set(phantom.slice(-phantomBytes), owner);
  }

  removeAllOf(sandbox: string): void {
    for (const [tail, owner] of this.#owners) if (owner.sandbox === sandbox) this.#owners.delete(tail);
  }

  /** `marked` begins with the mark. */
  ownerOf(marked: string): PhantomOwner | undefined {
    return this.#owners.get(marked.slice(0, phantomBytes));
  }

  /** Whose phantoms stand in this text, as it is. */
  ownersIn(text: string): readonly PhantomOwner[] {
    const found: PhantomOwner[] = [];
    for (let at = text.indexOf(phantomMark); at >= 0; at = text.indexOf(phantomMark, at + 1)) {
      const owner = this.ownerOf(text.slice(at, at + phantomBytes));
      if (owner !== undefined) found.push(owner);
    }
    return found;
  }
}
