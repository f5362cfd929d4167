/**
 * Race-free mounts (O4): what was judged is what gets mounted.
 *
 * What is judged is a path without links. Right before the start each source is opened along that path, following none, and
 * kept open, so that nothing else can get its number. After the start the same thing must be at the target inside. A runtime
 * with a kernel of its own shows numbers of its own; there the time of change and the mode are compared, and nobody can choose that time.
 */

import type { BigIntStats } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { BoxMount } from '../protocol/box.ts';
import { SallyportError } from '../protocol/errors.ts';
import { asShown, isOtherKernel, type Shown } from './expectations.ts';
import { HostWalk } from './host-walk.ts';

const bootIdFile = '/proc/sys/kernel/random/boot_id';

/** What `porter show` is asked for, beside the files that are always shown. */
export const shownOfMounts = (mounts: readonly BoxMount[]): readonly string[] => [
  bootIdFile,
  ...mounts.map(({ target }) => `@${target}`),
];

/** Device, number and time of birth: a number alone is given anew when a file is gone. */
export const identityOf = ({ dev, ino, birthtimeNs }: BigIntStats): string => `${dev}:${ino}:${birthtimeNs}`;

type Place = Pick<BoxMount, 'source' | 'target'>;

interface Pinned extends Place {
  readonly facts: BigIntStats;
  readonly now: () => Promise<BigIntStats>;
}

export class PinnedSources {
  readonly #walk: HostWalk;
  readonly #pinned: readonly Pinned[];
  readonly #covered: readonly Pinned[];

  private constructor(walk: HostWalk, pinned: readonly Pinned[], covered: readonly Pinned[]) {
    this.#walk = walk;
    this.#pinned = pinned;
    this.#covered = covered;
  }

  /** `covered`: what is hidden inside by other mounts. It is not compared, but where it is replaced its mount goes as well. */
  static async pin(mounts: readonly BoxMount[], covered: readonly Place[] = []): Promise<PinnedSources> {
    const walk = new HostWalk();
    const pinAll = async (places: readonly Place[]): Promise<readonly Pinned[]> => {
      const pinned: Pinned[] = [];
      for (const place of places) pinned.push(await pinOne(walk, place));
      return pinned;
    };
    try {
      return new PinnedSources(walk, await pinAll(mounts), await pinAll(covered));
    } catch (error) {
      await walk.close();
      throw error;
    }
  }

  /** By source. */
  get identities(): Readonly<Record<string, string>> {
    const all = [...this.#pinned, ...this.#covered];
    return Object.fromEntries(all.map(({ source, facts }) => [source, identityOf(facts)]));
  }

  /** `isLocal`: the engine has the files of this machine; asked only where numbers say nothing. */
  async requireMounted(shown: Shown, isLocal: () => Promise<boolean>): Promise<void> {
    const sameKernel = (await hostBootId()) === shown.get(bootIdFile)?.trim();
    if (!sameKernel && !(isOtherKernel(shown) && (await isLocal()))) return;
    for (const pinned of this.#pinned) {
      const inside = shown.get(asShown(`@${pinned.target}`))?.trim();
      // Its user may not look there, so neither can anything else inside.
      if (inside === undefined) continue;
      const fits = sameKernel ? sameThing(pinned.facts, inside) : await alike(pinned, inside);
      if (!fits) throw changed(pinned.source, `something else is at ${pinned.target} inside`);
    }
  }

  async close(): Promise<void> {
    await this.#walk.close();
  }
}

async function pinOne(walk: HostWalk, mount: Place): Promise<Pinned> {
  try {
    const handle = await walk.open(mount.source);
    const now = (): Promise<BigIntStats> => handle.stat({ bigint: true });
    const facts = await now();
    if (facts.isDirectory() || facts.isFile()) return { ...mount, facts, now };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw changed(mount.source, 'it is gone', error);
    throw changed(
      mount.source,
      code === 'ELOOP' || code === 'ENOTDIR' ? 'a link is on the way to it' : String(code),
      error,
    );
  }
  throw changed(mount.source, 'it is neither a file nor a folder any more');
}

function changed(path: string, why: string, cause?: unknown): SallyportError {
  return new SallyportError('source_changed', `${path} is not what was judged: ${why}`, {
    details: { path },
    cause,
  });
}

/** As `porter show` prints it: device, number, time in nanoseconds, mode. */
function sameThing({ dev, ino }: BigIntStats, inside: string): boolean {
  const [device, number] = inside.split(' ');
  return device === String(dev) && number === String(ino);
}

/** Somebody on the host may change it while it is looked at, so before or after will do. */
async function alike({ facts, now }: Pinned, inside: string): Promise<boolean> {
  const [, , time, mode] = inside.split(' ');
  return [facts, await now()].some((seen) => time === String(seen.ctimeNs) && mode === String(seen.mode));
}

async function hostBootId(): Promise<string | undefined> {
  return await readFile(bootIdFile, 'utf8').then(
    (text) => text.trim(),
    () => undefined,
  );
}
