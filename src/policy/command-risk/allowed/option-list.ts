/**
 * The allow-list of one program: its harmless options, which of them take a value, and what its operands are. An option that
 * is not on the list is not understood, whatever it does.
 *
 * The notation, words apart by spaces: `-abc` letters without a value; `-n:` with a value; `-f<` with a path that is read;
 * `-o>` with a path that is written; `-i?` with an optional value right behind it; `-#` a number for an option (`head -20`);
 * `--name` and its forms `--name: --name< --name> --name?`; `abbr` long options may be abbreviated, as getopt_long has it;
 * last the operands: `read` paths, `text`, `none`, `text+read` (a pattern, then paths), `write` (judged by the program's judge).
 * `dashes`: the program has options that run or write, so an operand must not be able to be one (`tar cf x *`).
 */

import type { Call } from '../call.ts';
import type { Arg } from '../words.ts';

type ValueKind = 'none' | 'text' | 'read' | 'write' | 'optional';
export type OperandKind = 'read' | 'text' | 'none' | 'text+read' | 'write';

export interface OptionList {
  readonly short: ReadonlyMap<string, ValueKind>;
  readonly long: ReadonlyMap<string, ValueKind>;
  readonly numbers: boolean;
  readonly abbreviates: boolean;
  readonly dashes: boolean;
  readonly operands: OperandKind;
}

const kinds: Readonly<Record<string, ValueKind>> = {
  '': 'none',
  ':': 'text',
  '<': 'read',
  '>': 'write',
  '?': 'optional',
};

export function readOptionList(notation: string): OptionList {
  const short = new Map<string, ValueKind>();
  const long = new Map<string, ValueKind>();
  const words = notation.trim().split(/\s+/);
  const operands = (words.at(-1) ?? 'none') as OperandKind;
  for (const word of words) {
    const [, name, sign = ''] = /^--([\w.-]+)([:<>?]?)$/.exec(word) ?? [];
    if (name !== undefined) long.set(name, kinds[sign] ?? 'none');
    else if (/^-.[:<>?]$/.test(word)) short.set(word.charAt(1), kinds[word.charAt(2)] ?? 'none');
    else if (/^-[^-#]+$/.test(word)) for (const letter of word.slice(1)) short.set(letter, 'none');
  }
  return {
    short,
    long,
    numbers: words.includes('-#'),
    abbreviates: words.includes('abbr'),
    dashes: words.includes('dashes'),
    operands,
  };
}

export interface Problem {
  readonly text: string;
  readonly arg?: Arg;
}

export interface ReadCall {
  /** Names as they are on the list: `n`, `recursive`. */
  readonly names: ReadonlySet<string>;
  readonly values: ReadonlyMap<string, Arg>;
  readonly operands: readonly Arg[];
  /** Words that are no paths. */
  readonly texts: ReadonlySet<Arg>;
  /** Values that are written to. */
  readonly written: readonly Arg[];
  readonly problem?: Problem;
}

/** SECURITY: an operand that is not known must not be able to turn into an option, nor to bring one along. */
const mayBeOption = ({ known, raw, splits }: Arg): boolean =>
  !known && (splits === true || !/^["']?[\w./:@%+,=]/.test(raw));

export function readCall(call: Pick<Call, 'args' | 'program'>, list: OptionList): ReadCall {
  const reader = new Reader(call.program, list);
  const { args } = call;
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] as Arg;
    if (reader.ended || !arg.known || !/^-./.test(arg.text)) {
      reader.operand(arg);
      continue;
    }
    if (arg.text === '--') {
      reader.ended = true;
      continue;
    }
    if (arg.glob && !/^--[\w-]+=/.test(arg.text)) reader.fail('an option that is a pattern', arg);
    const took = arg.text.startsWith('--') ? reader.long(arg, args[at + 1]) : reader.short(arg, args[at + 1]);
    if (took) at += 1;
  }
  return reader.result();
}

class Reader {
  readonly #program: string;
  readonly #list: OptionList;
  readonly #names = new Set<string>();
  readonly #values = new Map<string, Arg>();
  readonly #operands: Arg[] = [];
  readonly #texts = new Set<Arg>();
  readonly #written: Arg[] = [];
  #problem: Problem | undefined;
  ended = false;

  constructor(program: string, list: OptionList) {
    this.#program = program;
    this.#list = list;
  }

  fail(text: string, arg?: Arg): void {
    this.#problem ??= { text, ...(arg === undefined ? {} : { arg }) };
  }

  /** True where the next word is its value. */
  long(arg: Arg, next: Arg | undefined): boolean {
    const sign = arg.text.indexOf('=');
    const written = sign === -1 ? arg.text.slice(2) : arg.text.slice(2, sign);
    const name = this.#fullName(written);
    const kind = name === undefined ? undefined : this.#list.long.get(name);
    if (name === undefined || kind === undefined) {
      this.fail(`${this.#program} has the option --${written}, which is not known as harmless`, arg);
      return false;
    }
    this.#names.add(name);
    if (sign !== -1) {
      const value = { ...arg, text: arg.text.slice(sign + 1), raw: arg.text.slice(sign + 1) };
      if (kind === 'none') this.fail(`--${name} takes no value`, arg);
      this.#value(name, kind, value, arg);
      return false;
    }
    return this.#separate(name, kind, next, arg);
  }

  short(arg: Arg, next: Arg | undefined): boolean {
    const { text } = arg;
    if (this.#list.numbers && /^-\d+$/.test(text)) return false;
    for (let at = 1; at < text.length; at++) {
      const name = text.charAt(at);
      const kind = this.#list.short.get(name);
      if (kind === undefined) {
        this.fail(`${this.#program} has the option -${name}, which is not known as harmless`, arg);
        return false;
      }
      this.#names.add(name);
      if (kind === 'none') continue;
      const rest = text.slice(at + 1);
      if (rest !== '') {
        this.#value(name, kind, { ...arg, text: rest, raw: rest }, arg);
        return false;
      }
      return this.#separate(name, kind, next, arg);
    }
    return false;
  }

  operand(arg: Arg): void {
    const { operands, dashes } = this.#list;
    const isPattern = operands === 'text+read' && !this.#hasPattern() && this.#operands.length === 0;
    const isText = operands === 'text' || isPattern;
    this.#operands.push(arg);
    if (isText) this.#texts.add(arg);
    if (operands === 'none') this.fail(`${this.#program} takes no operands here`, arg);
    if (!this.ended && mayBeOption(arg)) this.fail('a word that is not known yet may be an option', arg);
    else if (!this.ended && dashes && arg.glob && /^[*?[]/.test(arg.text))
      this.fail('a pattern may become an option: put ./ before it', arg);
    if (!isText && operands !== 'write' && !arg.known)
      this.fail('which file it reads shows only when it runs', arg);
  }

  result(): ReadCall {
    return {
      names: this.#names,
      values: this.#values,
      operands: this.#operands,
      texts: this.#texts,
      written: this.#written,
      ...(this.#problem === undefined ? {} : { problem: this.#problem }),
    };
  }

  /** `grep -e x file`: the pattern is an option's value, and all operands are files. */
  #hasPattern(): boolean {
    return ['e', 'f', 'regexp', 'file', 'expression', 'files'].some((name) => this.#names.has(name));
  }

  #fullName(written: string): string | undefined {
    if (this.#list.long.has(written)) return written;
    if (!this.#list.abbreviates || written === '') return undefined;
    const fits = [...this.#list.long.keys()].filter((name) => name.startsWith(written));
    return fits.length === 1 ? fits[0] : undefined;
  }

  #separate(name: string, kind: ValueKind, next: Arg | undefined, arg: Arg): boolean {
    if (kind === 'none' || kind === 'optional') return false;
    if (next === undefined) {
      this.fail(`-${name} without its value`, arg);
      return false;
    }
    this.#value(name, kind, next, next);
    return true;
  }

  #value(name: string, kind: ValueKind, value: Arg, word: Arg): void {
    this.#values.set(name, value);
    if (word.splits === true) this.fail('a word that is not known yet may become several', word);
    if (kind === 'text' || kind === 'optional') this.#texts.add(word);
    if (kind === 'read' && !value.known) this.fail('which file it reads shows only when it runs', word);
    if (kind === 'write') this.#written.push(value);
  }
}
