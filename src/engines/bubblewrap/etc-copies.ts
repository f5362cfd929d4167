/**
 * A copy of what is chosen of /etc, shared by all boxes that see the same: one mount instead of thirty, each of which costs
 * bubblewrap a look at all others. What a box has of its own is a link to where porter is.
 */

import { createHash } from 'node:crypto';
import { chmod, cp, lstat, mkdir, mkdtemp, readdir, rename, rm, stat, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { porterMount } from '../../protocol/box.ts';

const prefix = 'etc-';
const draftPrefix = `${prefix}draft-`;
const othersRead = 0o004;
const othersEnter = 0o001;

export class EtcCopies {
  readonly #folder: string;
  readonly #own: readonly string[];
  readonly #checkpoint: (name: string) => void;
  #current: string | undefined;
  #making: Promise<string> | undefined;

  constructor(folder: string, own: readonly string[], checkpoint: (name: string) => void) {
    this.#folder = folder;
    this.#own = own;
    this.#checkpoint = checkpoint;
  }

  /** The path of a copy that is as these files are now. One making at a time. */
  async provide(files: readonly string[]): Promise<string> {
    this.#making ??= this.#provide(files).finally(() => {
      this.#making = undefined;
    });
    return await this.#making;
  }

  /** Those of other days. No box may run: what is taken away is gone for it, too. */
  async removeOld(): Promise<void> {
    const names = (await readdir(this.#folder)).filter((name) => name.startsWith(prefix));
    for (const name of names) {
      const path = join(this.#folder, name);
      if (path !== this.#current) await rm(path, { recursive: true, force: true });
    }
  }

  /** Of whoever was killed while it made one. Nobody may be making one. */
  async removeDrafts(): Promise<number> {
    const names = (await readdir(this.#folder).catch(() => [])).filter((name) =>
      name.startsWith(draftPrefix),
    );
    for (const name of names) await rm(join(this.#folder, name), { recursive: true, force: true });
    return names.length;
  }

  async #provide(files: readonly string[]): Promise<string> {
    const path = join(this.#folder, prefix + (await fingerprint(files)));
    // Asked each time: another daemon, or its user, may have cleared the folder.
    if (!(await isFolder(path))) await this.#make(path, files);
    this.#current = path;
    return path;
  }

  async #make(path: string, files: readonly string[]): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const draft = await mkdtemp(join(this.#folder, draftPrefix));
    for (const file of files) {
      await cp(file, join(draft, basename(file)), {
        recursive: true,
        verbatimSymlinks: true,
        filter: isPublic,
      });
    }
    for (const name of this.#own) await symlink(join(porterMount, name), join(draft, name));
    await openToAll(draft);
    this.#checkpoint('bubblewrap.etc');
    await rename(draft, path);
  }
}

/** SECURITY: root reads everything, and a box may see only what everybody may. */
async function isPublic(source: string): Promise<boolean> {
  const facts = await lstat(source);
  if (facts.isSymbolicLink()) return true;
  const needed = facts.isDirectory() ? othersRead | othersEnter : othersRead;
  return (facts.isFile() || facts.isDirectory()) && (facts.mode & needed) === needed;
}

/** The maker's mask is narrow, and the box's user is another one. */
async function openToAll(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await openToAll(path);
    else if (entry.isFile()) await chmod(path, 0o644);
  }
}

async function fingerprint(files: readonly string[]): Promise<string> {
  const seen = await Promise.all(
    files.map(async (file) => {
      const { mtimeMs, ctimeMs, size, ino } = await stat(file);
      return [file, mtimeMs, ctimeMs, size, ino].join(' ');
    }),
  );
  return createHash('sha256').update(seen.join('\n')).digest('hex').slice(0, 16);
}

const isFolder = async (path: string): Promise<boolean> =>
  await stat(path).then(
    (facts) => facts.isDirectory(),
    () => false,
  );
