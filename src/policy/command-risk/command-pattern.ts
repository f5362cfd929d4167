/**
 * Entries of the lists of forbidden and blocked commands. An entry is written like a command and compared with what was
 * parsed, never with text: its program must be the same, its options must all be there in whatever order or spelling, and
 * so must its operands. A `*` at the end of a word stands for anything.
 */

import { normalise, sinks, windowsPath } from './paths.ts';
import type { Arg } from './words.ts';

export interface CommandPattern {
  readonly entry: string;
  readonly program: string;
  readonly flags: readonly string[];
  readonly operands: readonly string[];
}

const longFlags = new Map([
  ['--recursive', 'r'],
  ['--force', 'f'],
  ['--no-preserve-root', ''],
]);

export function parseCommandPattern(entry: string): CommandPattern | undefined {
  const [program, ...rest] = entry.trim().split(/\s+/);
  if (program === undefined || program === '') return undefined;
  const words = rest.map((text) => ({ text, raw: text }));
  return {
    entry,
    program: program.toLowerCase(),
    flags: words.flatMap(({ text }) => flagsOf(text)),
    operands: words.filter(({ text }) => !isFlag(text)).map((word) => operandOf(word)),
  };
}

export function fitsPattern(pattern: CommandPattern, program: string, args: readonly Arg[]): boolean {
  if (!fitsWord(pattern.program, program.toLowerCase())) return false;
  const flags = new Set(args.flatMap(({ text }) => flagsOf(text)));
  if (!pattern.flags.every((flag) => flags.has(flag))) return false;
  const operands = args.filter(({ text, known }) => known && !isFlag(text)).map((arg) => operandOf(arg));
  return pattern.operands.every((wanted) => operands.some((operand) => fitsWord(wanted, operand)));
}

const fitsWord = (wanted: string, word: string): boolean =>
  wanted.endsWith('*')
    ? word.startsWith(wanted.slice(0, -1)) && !sinks.test(word.replace(/^[a-z]+=/, ''))
    : word === wanted;

/** `/s` is an option of Windows; a path has more to it. */
const isFlag = (text: string): boolean => /^-./.test(text) || /^\/[A-Za-z?]$/.test(text);

/** -rf and -f -r alike; the recursion of `rm` has two letters. */
function flagsOf(text: string): readonly string[] {
  const long = longFlags.get(text);
  if (long !== undefined) return long === '' ? [] : [long];
  if (text.startsWith('--')) return [text];
  if (/^\/[A-Za-z?]$/.test(text)) return [text.toLowerCase()];
  return /^-[A-Za-z]+$/.test(text) ? [...text.slice(1)].map((letter) => (letter === 'R' ? 'r' : letter)) : [];
}

function operandOf(word: Pick<Arg, 'text' | 'raw'>): string {
  const windows = windowsPath({ ...word, known: true, glob: false, span: { start: 0, end: 0 } });
  if (windows !== undefined) return windows.toLowerCase().replace(/\\\*?$/, '');
  // Everything in the root is the root.
  return word.text.startsWith('/') && !word.text.endsWith('*')
    ? normalise(word.text)
    : word.text.replace(/^\/+\*+$/, '/');
}
