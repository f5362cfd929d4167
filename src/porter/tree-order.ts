/**
 * The order in which porter sends a tree: each folder before what is in it, and all of that before anything else. Whoever keeps
 * something of each folder above a path relies on it: otherwise a few long paths would name as many folders as millions of files.
 */

import type { TreeHeader } from './tree-records.ts';
import { violation } from './violation.ts';

export class TreeOrder {
  /** As latin1. It and all folders above it came. */
  #folder = '';

  take({ kind, path }: Pick<TreeHeader, 'kind' | 'path'>): void {
    const text = path.toString('latin1');
    const above = text.slice(0, Math.max(0, text.lastIndexOf('/')));
    if (above !== '' && above !== this.#folder && !this.#folder.startsWith(`${above}/`))
      throw violation('a tree in no order');
    this.#folder = kind === 'directory' ? text : above;
  }
}
