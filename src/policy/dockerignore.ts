/**
 * Patterns as Docker has them (`.dockerignore`). Pure. They differ from git's: each is about the whole path from the root of the
 * tree, a folder that is left out takes everything below with it, and a later `!` brings single things of it back.
 */

import { SallyportError } from '../protocol/errors.ts';
import {
  compact,
  type Glob,
  type GlobState,
  globAfter,
  hasMatched,
  mayGoOn,
  slash,
  type Token,
} from './glob.ts';

export interface DockerPattern {
  readonly negated: boolean;
  readonly glob: Glob;
}

/** `file` is named where a line is wrong. */
export function dockerPatterns(file: string, text: string): readonly DockerPattern[] {
  return text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .map((line, index) => ({ line, number: index + 1 }))
    .filter(({ line }) => !line.startsWith('#') && line.trim() !== '')
    .map(({ line, number }) => patternOf(line.trim(), () => invalid(file, number, line)))
    .filter(({ glob }) => glob.length > 0);
}

export type DockerVerdict =
  | 'in'
  | 'out'
  /** Itself left out, but something below it may be in. */
  | 'look';

export function dockerVerdict(
  patterns: readonly DockerPattern[],
  path: Uint8Array,
  isFolder: boolean,
): DockerVerdict {
  const names = Buffer.from(path).toString('utf8').split('/');
  const last = names.pop() ?? '';
  const folder = names.reduce((above, name) => above.enter(name), DockerFolder.root(patterns));
  return folder.verdict(last, isFolder);
}

/** A pattern in a folder of the tree. */
interface Followed extends DockerPattern {
  /** After the folder's path and a slash. */
  readonly state: GlobState;
  /** It fits the folder, or one above it. */
  readonly fits: boolean;
}

/** Verdicts about what is in one folder. What its own path decides is found once, not for each name in it. */
export class DockerFolder {
  readonly #followed: readonly Followed[];

  private constructor(followed: readonly Followed[]) {
    this.#followed = followed;
  }

  static root(patterns: readonly DockerPattern[]): DockerFolder {
    return new DockerFolder(
      patterns.map((pattern) => ({ ...pattern, state: globAfter(pattern.glob, []), fits: false })),
    );
  }

  enter(name: string): DockerFolder {
    const codes = codesOf(name);
    return new DockerFolder(
      this.#followed.map((one) => {
        const { glob, state, fits } = one;
        const itself = globAfter(glob, codes, state);
        return {
          ...one,
          state: globAfter(glob, [slash], itself),
          fits: fits || hasMatched(glob, itself),
        };
      }),
    );
  }

  verdict(name: string, isFolder: boolean): DockerVerdict {
    let codes: readonly number[] | undefined;
    let isOut = false;
    for (const { negated, glob, state, fits } of this.#followed) {
      // Only one that would change the verdict needs to be asked.
      if (negated !== isOut) continue;
      if (!fits) {
        if (!mayGoOn(glob, state)) continue;
        codes ??= codesOf(name);
        if (!hasMatched(glob, globAfter(glob, codes, state))) continue;
      }
      isOut = !negated;
    }
    if (!isOut) return 'in';
    if (!isFolder) return 'out';
    const inside = [...codesOf(name), slash];
    return this.#followed.some(
      ({ negated, glob, state }) => negated && mayGoOn(glob, globAfter(glob, inside, state)),
    )
      ? 'look'
      : 'out';
  }
}

const codesOf = (text: string): readonly number[] => Array.from(text, (one) => one.codePointAt(0) ?? 0);

function patternOf(line: string, failure: () => SallyportError): DockerPattern {
  const negated = line.startsWith('!');
  const written = negated ? line.slice(1).trim() : line;
  if (written === '') throw failure();
  return { negated, glob: tokensOf(cleaned(written), failure) };
}

/** As Go's filepath.Clean, and relative to the root of the tree. What leads out of it matches nothing that is in it. */
function cleaned(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    const above = parts.at(-1);
    if (part === '..' && above !== undefined && above !== '..') parts.pop();
    else if (part !== '..' || !path.startsWith('/')) parts.push(part);
  }
  return parts.join('/');
}

function tokensOf(pattern: string, failure: () => SallyportError): Glob {
  const tokens: Token[] = [];
  const codes = codesOf(pattern);
  const is = (at: number, character: string): boolean => codes[at] === character.charCodeAt(0);
  for (let at = 0; at < codes.length; ) {
    if (is(at, '*') && is(at + 1, '*')) {
      at += is(at + 2, '/') ? 3 : 2;
      tokens.push({ kind: at === codes.length ? 'deep' : 'folders' });
    } else if (is(at, '*') || is(at, '?')) {
      tokens.push({ kind: is(at, '*') ? 'star' : 'one' });
      at++;
    } else if (is(at, '[')) {
      const set = readSet(codes, at + 1);
      if (set === undefined) throw failure();
      tokens.push(set.token);
      at = set.end;
    } else {
      const literal = codes[is(at, '\\') ? at + 1 : at];
      if (literal === undefined) throw failure();
      tokens.push({ kind: 'char', code: literal });
      at += is(at, '\\') ? 2 : 1;
    }
  }
  return compact(tokens);
}

interface Range {
  readonly low: number;
  readonly high: number;
}

/** As Go's filepath.Match has it: ranges, `^` for all others, `\` before what is special. Undefined: it is none. */
function readSet(
  codes: readonly number[],
  start: number,
): { readonly token: Token; readonly end: number } | undefined {
  const [close, dash, caret, backslash] = [']', '-', '^', '\\'].map((one) => one.charCodeAt(0));
  const negated = codes[start] === caret;
  const ranges: Range[] = [];
  let at = negated ? start + 1 : start;
  const take = (): number | undefined => {
    if (codes[at] === dash || codes[at] === close) return undefined;
    if (codes[at] === backslash) at++;
    return codes[at++];
  };
  while (codes[at] !== close || ranges.length === 0) {
    const low = take();
    if (low === undefined) return undefined;
    if (codes[at] !== dash) {
      ranges.push({ low, high: low });
      continue;
    }
    at++;
    const high = take();
    if (high === undefined) return undefined;
    ranges.push({ low, high });
  }
  const has = (code: number): boolean =>
    ranges.some(({ low, high }) => low <= code && code <= high) !== negated;
  return { token: { kind: 'set', has }, end: at + 1 };
}

function invalid(file: string, line: number, text: string): SallyportError {
  return new SallyportError(
    'refused_by_policy',
    `${file}, line ${line}: ${JSON.stringify(text.slice(0, 80))} is no pattern`,
    {
      details: { path: file, line },
      advice: 'Correct the line: brackets and backslashes have to be closed.',
    },
  );
}
