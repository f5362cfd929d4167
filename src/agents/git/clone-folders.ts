/** Where clones lie between the host's repository and the sandbox that they are copied into: a folder of the daemon's state. */

import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { CloneMaker, PreparedClone } from '../../sandboxes/ports.ts';
import { openRepository, startOf } from './host-repository.ts';
import { makePrivateClone } from './private-clone.ts';

export class CloneFolders implements CloneMaker {
  readonly #folder: string;
  readonly #environment: Readonly<Record<string, string>>;

  private constructor(folder: string, environment: Readonly<Record<string, string>>) {
    this.#folder = folder;
    this.#environment = environment;
  }

  /** What is there is of a daemon that ended in the middle of it: its sandboxes are undone as well. */
  static async open(folder: string, environment: Readonly<Record<string, string>>): Promise<CloneFolders> {
    await rm(folder, { recursive: true, force: true });
    return new CloneFolders(folder, environment);
  }

  async check({
    repository,
    branch,
  }: {
    readonly repository: string;
    readonly branch: string;
  }): Promise<void> {
    await startOf(await openRepository({ folder: repository, environment: this.#environment }), branch);
  }

  async make(wish: Parameters<CloneMaker['make']>[0]): Promise<PreparedClone> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const folder = join(this.#folder, randomBytes(8).toString('hex'));
    const remove = async (): Promise<void> => await rm(folder, { recursive: true, force: true });
    try {
      const { notes } = await makePrivateClone({ ...wish, folder, environment: this.#environment });
      return { folder, notes, remove };
    } catch (error) {
      await remove();
      throw error;
    }
  }
}
