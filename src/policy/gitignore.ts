/**
 * Patterns as git has them (gitignore(5)), compiled line by line. Pure. Patterns and paths are bytes, as they are for git: `?`
 * stands for one byte. Whatever git takes for no pattern matches nothing; there is no invalid one.
 */

import { compact, type Glob, globMatches, slash, type Token } from './glob.ts';

export interface GitPattern {
  readonly negated: boolean;
  readonly foldersOnly: boolean;
  /** It is about the whole path below the folder of its file, not about a name anywhere in it. */
  readonly anchored: boolean;
  readonly glob: Glob;
}

const code = (character: string): number => character.charCodeAt(0);
const special: readonly number[] = ['*', '?', '[', '\\'].map(code);
const [star, question, open, backslash] = special as [number, number, number, number];
const [close, dash, colon, bang, caret] = [']', '-', ':', '!', '^'].map(code) as [
  number,
  number,
  number,
  number,
  number,
];

/** The lines of a `.gitignore`. Comments and empty lines are left out. */
export function gitPatterns(text: Uint8Array): readonly GitPattern[] {
  // Each byte one character, so that nothing is lost of names that are not UTF-8.
  const lines = Buffer.from(text).toString('latin1').replace(/^ï»¿/, '').split('\n');
  return lines
    .map((line) => line.replace(/\r$/, ''))
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => patternOf(Buffer.from(withoutTrailingSpaces(line), 'latin1')));
}

/** Each entry one line of such a file; one that begins with `#` is a pattern all the same. */
export function gitPatternOf(text: string): GitPattern {
  return patternOf(Buffer.from(text, 'utf8'));
}

/** Undefined: none of them is about this path. The last one that is decides. */
export function gitVerdict(
  patterns: readonly GitPattern[],
  path: Uint8Array,
  isFolder: boolean,
): 'in' | 'out' | undefined {
  const name = path.subarray(path.lastIndexOf(slash) + 1);
  const met = patterns.findLast(
    ({ foldersOnly, anchored, glob }) =>
      (isFolder || !foldersOnly) && glob.length > 0 && globMatches(glob, anchored ? path : name),
  );
  if (met === undefined) return undefined;
  return met.negated ? 'in' : 'out';
}

/** Spaces behind a backslash are meant. */
function withoutTrailingSpaces(line: string): string {
  let end = line.length;
  while (end > 0 && line[end - 1] === ' ') end--;
  let backslashes = 0;
  while (line[end - 1 - backslashes] === '\\') backslashes++;
  return line.slice(0, backslashes % 2 === 1 && end < line.length ? end + 1 : end);
}

function patternOf(line: Buffer): GitPattern {
  const negated = line[0] === bang;
  let rest = negated ? line.subarray(1) : line;
  const foldersOnly = rest.at(-1) === slash;
  if (foldersOnly) rest = rest.subarray(0, -1);
  const anchored = rest.includes(slash);
  const plainEnd = rest.findIndex((byte) => special.includes(byte));
  const plain = plainEnd === -1 ? rest.length : plainEnd;
  const from = rest[0] === slash ? 1 : 0;
  return {
    negated,
    foldersOnly,
    anchored,
    glob: tokensOf(rest, { from, plain: Math.max(plain, from), anchored }) ?? [],
  };
}

interface Reading {
  readonly from: number;
  /** Before it there is nothing special. Git compares that much as text, so to it the pattern begins here. */
  readonly plain: number;
  readonly anchored: boolean;
}

/** Undefined: it can match nothing. */
function tokensOf(pattern: Buffer, reading: Reading): Glob | undefined {
  const tokens: Token[] = [];
  for (let at = reading.from; at < pattern.length; ) {
    const byte = pattern[at] ?? 0;
    if (byte === star) {
      at = takeStars(pattern, at, reading, tokens);
    } else if (byte === question) {
      tokens.push({ kind: 'one' });
      at++;
    } else if (byte === open) {
      const set = readSet(pattern, at + 1);
      if (set === undefined) return undefined;
      tokens.push({ kind: 'set', has: set.has });
      at = set.end;
    } else {
      const literal = byte === backslash ? pattern[at + 1] : byte;
      if (literal === undefined) return undefined;
      tokens.push({ kind: 'char', code: literal });
      at += byte === backslash ? 2 : 1;
    }
  }
  return compact(tokens);
}

/** Two stars that are a whole part of the path stand for any number of folders; else they are as one. */
function takeStars(pattern: Buffer, at: number, { plain, anchored }: Reading, tokens: Token[]): number {
  let end = at;
  while (pattern[end] === star) end++;
  const next = pattern[end];
  const startsPart = at === plain || pattern[at - 1] === slash;
  const endsPart = next === undefined || next === slash || (next === backslash && pattern[end + 1] === slash);
  if (!anchored || end - at === 1 || !startsPart || !endsPart) {
    tokens.push({ kind: 'star' });
    return end;
  }
  tokens.push({ kind: next === slash ? 'folders' : 'deep' });
  return next === slash ? end + 1 : end;
}

interface ByteSet {
  readonly has: (code: number) => boolean;
  readonly end: number;
}

const classes: Readonly<Record<string, RegExp>> = {
  alnum: /[0-9A-Za-z]/,
  alpha: /[A-Za-z]/,
  blank: /[ \t]/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what the class is.
  cntrl: /[\0-\x1f\x7f]/,
  digit: /[0-9]/,
  graph: /[!-~]/,
  lower: /[a-z]/,
  print: /[ -~]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /[ \t-\r]/,
  upper: /[A-Z]/,
  xdigit: /[0-9A-Fa-f]/,
};

/** What stands between brackets; `at` is behind the first one. Undefined: it has no end, or a class that nobody knows. */
function readSet(pattern: Buffer, start: number): ByteSet | undefined {
  const negated = pattern[start] === bang || pattern[start] === caret;
  const members = new Set<number>();
  let before: number | undefined;
  const first = negated ? start + 1 : start;
  for (let at = first; ; ) {
    const byte = pattern[at];
    if (byte === undefined) return undefined;
    if (byte === close && at > first) return { has: (one) => members.has(one) !== negated, end: at + 1 };
    const named = byte === open && pattern[at + 1] === colon ? readClass(pattern, at + 2) : undefined;
    if (named === 'unknown') return undefined;
    if (named !== undefined) {
      for (let one = 0; one < 128; one++) {
        if (named.members.test(String.fromCharCode(one))) members.add(one);
      }
      before = undefined;
      at = named.end;
      continue;
    }
    const isRange = byte === dash && before !== undefined && ![undefined, close].includes(pattern[at + 1]);
    const place = isRange ? at + 1 : at;
    const escaped = pattern[place] === backslash;
    const literal = pattern[escaped ? place + 1 : place];
    if (literal === undefined) return undefined;
    for (let one = isRange ? (before ?? literal) : literal; one <= literal; one++) members.add(one);
    before = isRange ? undefined : literal;
    at = place + (escaped ? 2 : 1);
  }
}

/** Undefined: no class, but a bracket and a colon. */
function readClass(
  pattern: Buffer,
  start: number,
): { readonly members: RegExp; readonly end: number } | 'unknown' | undefined {
  const end = pattern.indexOf(close, start);
  if (end === -1) return 'unknown';
  if (end - 1 < start || pattern[end - 1] !== colon) return undefined;
  const members = classes[pattern.toString('latin1', start, end - 1)];
  return members === undefined ? 'unknown' : { members, end: end + 1 };
}
