/**
 * What is kept of a box between its runs: a folder with what it was asked to be, how it runs, and what it may write to. It is
 * the truth about a box; nothing of it is remembered in memory.
 */

import { randomBytes } from 'node:crypto';
import { chown, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { removeTree } from '../../lib/remove-tree.ts';
import type { BoxRequest } from '../../protocol/box.ts';
import { SallyportError } from '../../protocol/errors.ts';
import type { BoxHome } from '../../sandboxes/ports.ts';

export interface KeptBox {
  readonly box: BoxRequest;
  readonly home: BoxHome;
  readonly createdMs: number;
}

const idShape = /^bw-[0-9a-f]{24}$/;
const recordName = 'box.json';

export class BoxFolders {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  pathOf(id: string, ...names: readonly string[]): string {
    // SECURITY: an id becomes a path, and a folder is removed by it.
    if (!idShape.test(id)) throw unknownBox(id);
    return join(this.#root, id, ...names);
  }

  async add(
    kept: KeptBox,
    checkpoint: (name: string) => void,
    fill: (folder: string) => Promise<void>,
  ): Promise<string> {
    const id = `bw-${randomBytes(12).toString('hex')}`;
    await mkdir(this.pathOf(id), { recursive: true, mode: 0o700 });
    checkpoint('bubblewrap.folder');
    try {
      await fill(this.pathOf(id));
      checkpoint('bubblewrap.filled');
      // Renamed into place: a folder without this file was never finished, and is no box.
      const path = this.pathOf(id, recordName);
      await writeFile(`${path}.new`, JSON.stringify(kept), { mode: 0o600 });
      checkpoint('bubblewrap.draft');
      await rename(`${path}.new`, path);
      return id;
    } catch (error) {
      await this.remove(id);
      throw error;
    }
  }

  async find(id: string): Promise<KeptBox | undefined> {
    if (!idShape.test(id)) return undefined;
    const text = await readFile(this.pathOf(id, recordName), 'utf8').catch(() => undefined);
    return text === undefined ? undefined : (JSON.parse(text) as KeptBox);
  }

  async get(id: string): Promise<KeptBox> {
    const kept = await this.find(id);
    if (kept === undefined) throw unknownBox(id);
    return kept;
  }

  async ids(): Promise<readonly string[]> {
    const names = await readdir(this.#root).catch(() => []);
    return names.filter((name) => idShape.test(name));
  }

  /** Folders that never became a box, or that were on their way to be removed. Nobody may be making one. */
  async removeUnfinished(): Promise<number> {
    let removed = 0;
    for (const id of await this.ids()) {
      if ((await this.find(id)) !== undefined) continue;
      await this.remove(id);
      removed++;
    }
    return removed;
  }

  /** Nothing of it may run any more. Links are removed, never followed. */
  async remove(id: string): Promise<void> {
    await removeTree(this.pathOf(id));
  }
}

/** A folder or an empty file, and the folders above it that are missing, as this user's where that can be done. */
export async function provide(
  path: string,
  kind: 'directory' | 'file',
  owner: { readonly uid: number; readonly gid: number } | undefined,
): Promise<void> {
  const folder = kind === 'directory' ? path : dirname(path);
  const first = await mkdir(folder, { recursive: true, mode: 0o755 });
  if (kind === 'file') await writeFile(path, '', { flag: 'wx', mode: 0o644 });
  if (owner === undefined) return;
  const made = [path];
  for (let above = folder; first !== undefined && above.startsWith(first); above = dirname(above))
    made.push(above);
  for (const one of made) await chown(one, owner.uid, owner.gid);
}

function unknownBox(id: string): SallyportError {
  return new SallyportError('engine_not_found', `there is no box ${JSON.stringify(id)}`, {
    details: { box: id },
    advice: 'It may have been removed by hand; `sally ls` shows what is known.',
  });
}
