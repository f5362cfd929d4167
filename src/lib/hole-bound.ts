/**
 * How much of a file is holes, and how many of them are read. A program inside makes a file of 1 TiB without data at no cost;
 * reading its zeros takes ten minutes and every copy that writes them out fills a disk.
 *
 * A file system that compresses, or that keeps the tail of a file elsewhere, has fewer blocks than data: the bound leaves room for that.
 */

/** Of one file, or of all files of one copy. Reading them takes about ten seconds. */
export const mostHoleBytes = 16 * 2 ** 30;

/** Of `fs.Stats`, in either kind of number. */
interface Facts {
  readonly size: number | bigint;
  /** Of 512 bytes, on every system. */
  readonly blocks: number | bigint;
}

export const holeBytesOf = ({ size, blocks }: Facts): number =>
  Math.max(0, Number(size) - Number(blocks) * 512);

export class TooManyHolesError extends Error {
  constructor(path: string) {
    super(`${path} has holes, and more than ${mostHoleBytes / 2 ** 30} GiB of them are not read`);
    this.name = 'TooManyHolesError';
  }
}

/** For the files of one copy, each before it is read. */
export class HoleBound {
  #bytes = 0;

  add(path: string, holeBytes: number): void {
    if (!this.take(holeBytes)) throw new TooManyHolesError(path);
  }

  /** False: the file is not to be read, and does not count. */
  take(holeBytes: number): boolean {
    if (this.#bytes + holeBytes > mostHoleBytes) return false;
    this.#bytes += holeBytes;
    return true;
  }
}
