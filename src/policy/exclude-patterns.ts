/**
 * What is left out of a copy. Pure: the text of files is handed in.
 *
 * `exclude_patterns` and files such as `.gitignore` are in git's syntax, a `.dockerignore` is in Docker's. For each path the
 * spec's own patterns are asked first. Where none of them is about it, one file that leaves it out is enough. What is below a
 * folder that is left out is not looked at, so nothing of it can be brought back, but by a `!` of a `.dockerignore`.
 */

import { type DockerPattern, type DockerVerdict, dockerPatterns, dockerVerdict } from './dockerignore.ts';
import { type GitPattern, gitPatternOf, gitPatterns, gitVerdict } from './gitignore.ts';

export interface CopyExcludes {
  readonly patterns: readonly string[];
  /** Names of files at the root of the tree; those in git's syntax count in the folders below as well. */
  readonly from: readonly string[];
}

export const isDockerSyntax = (name: string): boolean => name.endsWith('.dockerignore');

/** The rules at one folder of the tree: those of the folders above it, and its own. */
export class ExcludeRules {
  readonly #own: readonly GitPattern[];
  readonly #docker: readonly (readonly DockerPattern[])[];
  /** By name of the file; the deepest folder last. */
  readonly #git: ReadonlyMap<string, readonly Level[]>;

  private constructor(
    own: readonly GitPattern[],
    docker: readonly (readonly DockerPattern[])[],
    git: ReadonlyMap<string, readonly Level[]>,
  ) {
    this.#own = own;
    this.#docker = docker;
    this.#git = git;
  }

  static of({ patterns }: CopyExcludes): ExcludeRules {
    return new ExcludeRules(patterns.map(gitPatternOf), [], new Map());
  }

  /** With the patterns of a file in this folder; `folder` is relative to the tree, empty for its root. */
  withFile(folder: Uint8Array, name: string, content: Uint8Array): ExcludeRules {
    if (isDockerSyntax(name)) {
      const patterns = dockerPatterns(name, Buffer.from(content).toString('utf8'));
      return new ExcludeRules(this.#own, [...this.#docker, patterns], this.#git);
    }
    const level: Level = {
      skip: folder.length === 0 ? 0 : folder.length + 1,
      patterns: gitPatterns(content),
    };
    const levels = [...(this.#git.get(name) ?? []), level];
    return new ExcludeRules(this.#own, this.#docker, new Map([...this.#git, [name, levels]]));
  }

  /** Of a path whose parent is not left out. */
  verdict(path: Uint8Array, isFolder: boolean): DockerVerdict {
    const own = gitVerdict(this.#own, path, isFolder);
    if (own !== undefined) return own;
    if ([...this.#git.values()].some((levels) => isLeftOut(levels, path, isFolder))) return 'out';
    const verdicts = this.#docker.map((patterns) => dockerVerdict(patterns, path, isFolder));
    if (verdicts.includes('out')) return 'out';
    return verdicts.includes('look') ? 'look' : 'in';
  }
}

interface Level {
  /** So many bytes of a path lead to the folder of the file. */
  readonly skip: number;
  readonly patterns: readonly GitPattern[];
}

/** The nearest file that has something to say decides. */
function isLeftOut(levels: readonly Level[], path: Uint8Array, isFolder: boolean): boolean {
  for (const { skip, patterns } of levels.toReversed()) {
    const verdict = gitVerdict(patterns, path.subarray(skip), isFolder);
    if (verdict !== undefined) return verdict === 'out';
  }
  return false;
}
