/** How much a copy of a tool's folder may hold: it is in the state folder, where no disk limit of a sandbox counts it. */

import { mostHoleBytes } from '../lib/hole-bound.ts';
import { formatSize } from '../lib/sizes.ts';
import type { PlannedShadow } from '../policy/tool-sources.ts';
import { SallyportError } from '../protocol/errors.ts';

export interface CopyBounds {
  readonly entries: number;
  /** Of data, without holes. */
  readonly bytes: number;
  readonly holeBytes: number;
}

const cacheBytes = 256 * 2 ** 20;
/** Of one that may be empty: a few seconds of copying. */
export const mostCopied: CopyBounds = { entries: 10_000, bytes: cacheBytes, holeBytes: cacheBytes };
const programBytes = 2 ** 30;
/** Of programs that are installed there: several Pythons and their tools. Without them, commands are missing inside. */
export const mostCopiedPrograms: CopyBounds = {
  entries: 50_000,
  bytes: programBytes,
  holeBytes: programBytes,
};
const ofPrograms: ReadonlySet<string> = new Set(['uv-data']);
/** Without it a sandbox lacks its sessions and settings, so it is worth waiting for. A program inside may have filled it. */
export const mostCopiedWhole: CopyBounds = {
  entries: 200_000,
  bytes: 4 * 2 ** 30,
  holeBytes: mostHoleBytes,
};

export function boundsOf({ mountId, mayBeEmpty }: PlannedShadow): CopyBounds {
  if (mayBeEmpty !== true) return mostCopiedWhole;
  return ofPrograms.has(mountId) ? mostCopiedPrograms : mostCopied;
}

/** Counts what one copy holds, and throws `copy_too_large` when that is too much. */
export class CopyMeter {
  readonly #source: string;
  readonly #bounds: CopyBounds;
  #entries = 0;
  #bytes = 0;
  #holeBytes = 0;

  constructor(source: string, bounds: CopyBounds) {
    this.#source = source;
    this.#bounds = bounds;
  }

  addEntry(path: Buffer, holeBytes: number): void {
    this.#entries += 1;
    this.#holeBytes += holeBytes;
    const { entries, holeBytes: most } = this.#bounds;
    if (this.#entries > entries) throw this.#tooLarge(`has more than ${entries} files and folders`, path);
    if (this.#holeBytes > most)
      throw this.#tooLarge(`is larger than ${formatSize(most)} with the holes of`, path, holeBytes);
  }

  addData(path: Buffer, bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > this.#bounds.bytes)
      throw this.#tooLarge(`is larger than ${formatSize(this.#bounds.bytes)}`, path);
  }

  #tooLarge(what: string, path: Buffer, holeBytes?: number): SallyportError {
    const at = `${this.#source}/${path.toString('utf8')}`;
    const file = holeBytes === undefined ? '' : ` ${at}`;
    return new SallyportError('copy_too_large', `${this.#source} ${what}${file}`, {
      details: { path: at },
      advice:
        'Remove what makes it large, or the link in it that leads out of it: a folder without such a link is not copied.',
    });
  }
}
