/**
 * Where changes wait before they are renamed into place: a folder beside them, so that a rename is enough.
 *
 * SECURITY: somebody else may write to the folder above it, as a sandbox with a live workspace does, and put a link in its place. So it
 * is opened once, as the folder that was made, and everything in it is reached from there. What is removed is what waits in it:
 * files and links with numbers for names, and never what is in a folder.
 */

import { randomBytes } from 'node:crypto';
import { fstatSync, mkdirSync, readdirSync, rmdirSync, unlinkSync } from 'node:fs';
import type { OpenFolder } from '../lib/open-folder.ts';
import { SallyportError } from '../protocol/errors.ts';

/** Names of folders in which changes wait to be written. */
export const stagingPrefix = '.sallyport-apply-';

export const stagingName = (): Buffer =>
  Buffer.from(`${stagingPrefix}${process.pid}-${randomBytes(6).toString('hex')}`);

const others = 0o077;

export class StagingFolder {
  readonly #above: OpenFolder;
  readonly #name: Buffer;
  readonly #folder: OpenFolder;

  private constructor(above: OpenFolder, name: Buffer) {
    this.#above = above;
    this.#name = name;
    this.#folder = above.enter(name);
  }

  static make(above: OpenFolder): StagingFolder {
    const name = stagingName();
    mkdirSync(above.child(name), { mode: 0o700 });
    const made = new StagingFolder(above, name);
    const { uid, mode } = fstatSync(made.#folder.fd);
    if (uid === (process.geteuid?.() ?? uid) && (mode & others) === 0) return made;
    made.#folder.close();
    throw new SallyportError('changed_meanwhile', 'another folder took the place of the one for changes', {
      details: { path: name.toString() },
    });
  }

  /** Of processes that were killed before they could remove theirs. */
  static removeAbandoned(above: OpenFolder): void {
    for (const name of readdirSync(above.path, { encoding: 'utf8' })) {
      if (!name.startsWith(stagingPrefix)) continue;
      const pid = Number.parseInt(name.slice(stagingPrefix.length), 10);
      if (!(pid > 0) || isAlive(pid)) continue;
      removeLeft(above, Buffer.from(name));
    }
  }

  at(index: number): Buffer {
    return this.#folder.child(Buffer.from(String(index)));
  }

  /** What was not renamed into place, and the folder itself if it is still where it was made. */
  remove(): void {
    emptyOf(this.#folder);
    this.#folder.close();
    quietly(() => rmdirSync(this.#above.child(this.#name)));
  }
}

/** A link has none of ours in it. */
function removeLeft(above: OpenFolder, name: Buffer): void {
  try {
    const left = above.enter(name);
    emptyOf(left);
    left.close();
    quietly(() => rmdirSync(above.child(name)));
  } catch {
    quietly(() => unlinkSync(above.child(name)));
  }
}

function emptyOf(folder: OpenFolder): void {
  for (const name of readdirSync(folder.path, { encoding: 'utf8' }))
    if (/^\d+$/.test(name)) quietly(() => unlinkSync(folder.child(Buffer.from(name))));
}

/** What is left behind is in the way of nobody. */
function quietly(act: () => void): void {
  try {
    act();
  } catch {
    // It is gone already, or somebody put something else there.
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
