/**
 * Opens files and folders of the host without following a single link, and keeps them open: what was opened stays the same
 * thing, whatever happens to its path. Where the kernel cannot do that (not Linux) links on the way are looked for instead,
 * which leaves a moment in between.
 *
 * It never opens anything for reading or writing; what is done with a handle is the caller's affair.
 */

import { constants } from 'node:fs';
import { type FileHandle, open, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Not in Node's constants: to name a thing without opening it for anything. */
const pathOnly = process.platform === 'linux' ? 0o10000000 : constants.O_RDONLY;
const isLinux = process.platform === 'linux';

/** Many paths of one moment; folders on the way are opened once. */
export class HostWalk {
  readonly #folders = new Map<string, Promise<FileHandle>>();
  readonly #handles: FileHandle[] = [];

  /** Of the thing itself. Rejects with ELOOP or ENOTDIR where a link is on the way, and with ENOENT where nothing is there. */
  async open(path: string): Promise<FileHandle> {
    const folder = await this.folder(dirname(path));
    return this.#keep(
      await open(entryOf(folder, dirname(path), basename(path)), pathOnly | constants.O_NOFOLLOW),
    );
  }

  async folder(path: string): Promise<FileHandle> {
    const known = this.#folders.get(path);
    if (known !== undefined) return await known;
    const opened = this.#openFolder(path);
    this.#folders.set(path, opened);
    return await opened;
  }

  /** A path for the entry of a folder that was opened, good as long as this walk is not closed. */
  async entry(path: string): Promise<string> {
    return entryOf(await this.folder(dirname(path)), dirname(path), basename(path));
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#folders.values()]);
    await Promise.allSettled(this.#handles.map((handle) => handle.close()));
    this.#handles.length = 0;
    this.#folders.clear();
  }

  async #openFolder(path: string): Promise<FileHandle> {
    const flags = pathOnly | constants.O_DIRECTORY | constants.O_NOFOLLOW;
    if (path === '/') return this.#keep(await open('/', flags));
    if (!isLinux && (await realpath(path)) !== path)
      throw Object.assign(new Error(`a link is in ${path}`), { code: 'ELOOP' });
    const parent = dirname(path);
    const handle = isLinux ? await this.folder(parent) : undefined;
    return this.#keep(await open(entryOf(handle, parent, basename(path)), flags));
  }

  #keep(handle: FileHandle): FileHandle {
    this.#handles.push(handle);
    return handle;
  }
}

/** The kernel's way to name an entry of an open folder, where there is one. */
function entryOf(folder: FileHandle | undefined, path: string, name: string): string {
  return isLinux && folder !== undefined ? `/proc/self/fd/${folder.fd}/${name}` : join(path, name);
}
