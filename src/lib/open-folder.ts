/**
 * A folder of this machine that is open, and paths that begin at it whatever becomes of its name.
 *
 * SECURITY: `enter` follows no link, so a chain of these never leaves the tree in which it began. Where the system has no
 * /proc/self/fd, paths are by name: links that are there are refused, but whoever swaps a folder at the right moment is not
 * noticed.
 */

import { closeSync, constants, existsSync, openSync } from 'node:fs';

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
const slash = Buffer.from('/');
const byDescriptor = existsSync('/proc/self/fd');

export class OpenFolder {
  readonly fd: number;
  /** For calls that want a path; without a slash at its end. */
  readonly path: Buffer;
  readonly #prefix: Buffer;

  private constructor(fd: number, name: Buffer) {
    this.fd = fd;
    this.path = byDescriptor ? Buffer.from(`/proc/self/fd/${fd}`) : name;
    this.#prefix = Buffer.concat([this.path, slash]);
  }

  /** The first of a chain; the path may lead through links. */
  static at(path: string): OpenFolder {
    return new OpenFolder(openSync(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK), Buffer.from(path));
  }

  /** The same where the name itself must be no link; what is above it is the caller's affair. */
  static real(path: string): OpenFolder {
    return new OpenFolder(
      openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK),
      Buffer.from(path),
    );
  }

  /** The path of a name in this folder. It is the caller's to follow no link there. */
  child(name: Buffer): Buffer {
    return Buffer.concat([this.#prefix, name]);
  }

  /** Fails for a link and for whatever else is no folder. */
  enter(name: Buffer): OpenFolder {
    const at = this.child(name);
    return new OpenFolder(openSync(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK), at);
  }

  close(): void {
    closeSync(this.fd);
  }
}
