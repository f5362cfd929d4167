/**
 * What was left out of a copy, asked of single paths afterwards: by the patterns as they were then, whatever the files of
 * patterns say by now. Pure.
 */

import type { DockerVerdict } from './dockerignore.ts';
import { type CopyExcludes, ExcludeRules } from './exclude-patterns.ts';

/** A file of patterns that counted when the copy was made. */
export interface PatternFile {
  /** Relative to the tree; empty: its root. */
  readonly folder: Buffer;
  readonly name: string;
  readonly content: Buffer;
}

export class CopiedExcludes {
  readonly #files = new Map<string, PatternFile[]>();
  /** By folder. 'out': it was left out with all that is in it. */
  readonly #folders = new Map<string, ExcludeRules | 'out'>();

  /** `files` in the order in which they were read. */
  constructor(excludes: CopyExcludes, files: readonly PatternFile[]) {
    for (const file of files) {
      const key = file.folder.toString('latin1');
      this.#files.set(key, [...(this.#files.get(key) ?? []), file]);
    }
    this.#folders.set('', this.#withFilesOf(Buffer.alloc(0), ExcludeRules.of(excludes)));
  }

  /** As of the copy itself: 'look' is a folder that is only there if something in it is. */
  verdict(path: Buffer, isFolder: boolean): DockerVerdict {
    const above = this.#rulesIn(path.subarray(0, Math.max(0, path.lastIndexOf(slash))));
    return above === 'out' ? 'out' : above.verdict(path, isFolder);
  }

  #rulesIn(folder: Buffer): ExcludeRules | 'out' {
    const key = folder.toString('latin1');
    const known = this.#folders.get(key);
    if (known !== undefined) return known;
    const above = this.#rulesIn(folder.subarray(0, Math.max(0, folder.lastIndexOf(slash))));
    const isOut = above === 'out' || above.verdict(folder, true) === 'out';
    const rules = isOut ? 'out' : this.#withFilesOf(folder, above);
    this.#folders.set(key, rules);
    return rules;
  }

  #withFilesOf(folder: Buffer, above: ExcludeRules): ExcludeRules {
    const files = this.#files.get(folder.toString('latin1')) ?? [];
    return files.reduce((rules, { name, content }) => rules.withFile(folder, name, content), above);
  }
}

const slash = 0x2f;
