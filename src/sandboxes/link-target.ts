/**
 * Inspects the target of a link of a copied tree, part by part (A5). SECURITY: follows no link on the way, because a sandbox that
 * has the tree live could lead it anywhere. Opens the target and never reads it.
 */

import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';

/** `elsewhere`: a link is on the way. That link is judged itself, or is left out and not there inside. */
export type LinkTarget = 'readable' | 'unreadable' | 'missing' | 'elsewhere';

type Kind = 'file' | 'directory' | 'other' | 'unreadable' | 'missing' | 'elsewhere';

/** Links of one package lead to the same few folders. */
const mostFolders = 1000;

export class LinkTargets {
  readonly #root: string;
  readonly #folders = new Set<string>();

  /** Paths are bytes, one character each. */
  constructor(root: string) {
    this.#root = root;
  }

  /** `reached` is absolute, in the tree, and without `.` and `..`. */
  async inspect(reached: string): Promise<LinkTarget> {
    const parts = reached.slice(this.#root.length).split('/').slice(1);
    let at = this.#root;
    let kind: Kind = 'directory';
    for (const part of parts) {
      if (kind === 'file' || kind === 'other') return 'missing';
      if (kind !== 'directory') return kind;
      at = `${at}/${part}`;
      kind = this.#folders.has(at) ? 'directory' : await kindOf(at);
      if (kind === 'directory') this.#remember(at);
    }
    if (kind === 'file' || kind === 'directory') return await openable(at);
    // Devices, sockets and pipes are judged themselves, or left out. To open one may do something.
    return kind === 'other' ? 'readable' : kind;
  }

  #remember(folder: string): void {
    if (this.#folders.size >= mostFolders) this.#folders.clear();
    this.#folders.add(folder);
  }
}

const fileOf = (path: string): Buffer => Buffer.from(path, 'latin1');

async function kindOf(path: string): Promise<Kind> {
  try {
    const facts = await lstat(fileOf(path));
    if (facts.isSymbolicLink()) return 'elsewhere';
    if (facts.isDirectory()) return 'directory';
    return facts.isFile() ? 'file' : 'other';
  } catch (error) {
    return kindOfFailure(error);
  }
}

async function openable(path: string): Promise<LinkTarget> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  try {
    const opened = await open(fileOf(path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    await opened.close();
    return 'readable';
  } catch (error) {
    return kindOfFailure(error);
  }
}

function kindOfFailure(error: unknown): 'missing' | 'unreadable' {
  const { code = '' } = error as NodeJS.ErrnoException;
  // A link may have any text, also a name that is too long for a file.
  if (['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP'].includes(code)) return 'missing';
  if (code === 'EACCES' || code === 'EPERM') return 'unreadable';
  throw error;
}
