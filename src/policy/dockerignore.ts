/**
 * Patterns as Docker has them (`.dockerignore`). Pure. They differ from git's: each is about the whole path from the root of the
 * tree, a folder that is left out takes everything below with it, and a later `!` brings single things of it back.
 */

import { SallyportError } from '../protocol/errors.ts';
import { type Codes, compact, type Glob, globMatches, globMayMatchBelow, slash, type Token } from './glob.ts';

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
  const codes = codesOf(path);
  const prefixes = withParents(codes);
  let isOut = false;
  for (const { negated, glob } of patterns) {
    // Only one that would change the verdict needs to be asked.
    if (negated === isOut && prefixes.some((prefix) => globMatches(glob, prefix))) isOut = !negated;
  }
  if (!isOut) return 'in';
  if (!isFolder) return 'out';
  const inside = [...codes, slash];
  return patterns.some(({ negated, glob }) => negated && globMayMatchBelow(glob, inside)) ? 'look' : 'out';
}

const codesOf = (path: Uint8Array | string): readonly number[] =>
  Array.from(
    typeof path === 'string' ? path : Buffer.from(path).toString('utf8'),
    (one) => one.codePointAt(0) ?? 0,
  );

/** The path and all folders above it. */
function withParents(codes: readonly number[]): readonly Codes[] {
  const ends = codes.flatMap((code, index) => (code === slash ? [index] : []));
  return [...ends, codes.length].map((end) => codes.slice(0, end));
}

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
