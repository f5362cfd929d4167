/**
 * The variables of a script: which values a name can have, as far as the script itself says so, and which names steer the
 * shell or a program. A name that is set in a way that cannot be followed has no known value. Pure.
 */

import { type Assignment, forEachChild, type ParsedScript, type SyntaxNode, type Word } from 'unbash';
import { isNumeric, listsEmptyLines, listsNames, listsSecrets } from './outputs.ts';
import { anyName, fieldsOf, hidden, literal, ownName, ownSecret, type Piece, type Values } from './words.ts';

interface Site {
  readonly value: Piece | Word | readonly Word[];
  /** Where in the text the name surely has this value. */
  readonly from: number;
  readonly until: number;
}

/** Names that bash itself always sets: plain words without a dash, or numbers. */
const shellVariables =
  /^([?$#]|UID|EUID|PPID|RANDOM|SECONDS|LINENO|SHLVL|BASHPID|BASH_VERSION|OSTYPE|HOSTTYPE|MACHTYPE)$/;
/** Plain words as well, where they are set. SECURITY: `$LC_ALL.env` is `.env` where they are not. */
const environmentVariables =
  /^(!|USER|LOGNAME|HOSTNAME|SRANDOM|EPOCHSECONDS|LANG|LC_ALL|TERM|COLUMNS|LINES)$/;

export class Variables implements Values {
  readonly #script: ParsedScript;
  /** Another script started this one, and may have set what the environment has. */
  readonly #isInner: boolean;
  #sites: Map<string, Site[]> | undefined;
  readonly #resolved = new Map<string, Piece | undefined>();
  /** Text that is run by `eval` and the like may set anything. */
  #isOpaque = false;
  /** Reads of names that a stage before them listed, by their position. */
  readonly #listed = new Set<number>();
  readonly #arrays = new Set<string>();

  constructor(script: ParsedScript, isInner: boolean) {
    this.#script = script;
    this.#isInner = isInner;
  }

  /** `alone`: the value is all of the word, so that it matters less whether it is set. */
  valueOf(name: string, pos: number, alone: boolean): Piece {
    const sites = this.#all();
    if (this.#isOpaque) return hidden;
    const own = sites.get(name);
    if (own === undefined) {
      if (name === 'HOME') return { ...literal('~'), reveals: true };
      if (name === 'PWD') return { ...literal('.'), reveals: true };
      if (shellVariables.test(name)) return anyName;
      return alone && !this.#isInner && environmentVariables.test(name) ? ownName : hidden;
    }
    if (!alone && !own.some(({ from, until }) => from <= pos && pos < until)) return hidden;
    return this.#resolve(name, own) ?? hidden;
  }

  /** SECURITY: to `declare` a name that is an array bash reads the value as the text of an array, and expands it. */
  isArray(name: string): boolean {
    this.#all();
    return this.#isOpaque || this.#isInner || this.#arrays.has(name);
  }

  /** Evaluating the name as an expression runs nothing: all its values are numbers. */
  isNumber(name: string): boolean {
    const sites = this.#all();
    if (this.#isOpaque) return false;
    const own = sites.get(name);
    if (own === undefined) return false;
    const value = this.#resolve(name, own);
    return own.every(({ value: each }) => each === anyName || isNumberWord(each)) && value !== undefined;
  }

  /** Evaluating the name as an expression runs nothing: its values are numbers, or nothing sets it. */
  isHarmlessIndex(name: string): boolean {
    const isUnset = /^[a-z]/.test(name) && !this.#all().has(name) && !this.#isOpaque && !this.#isInner;
    return isUnset || this.isNumber(name);
  }

  #resolve(name: string, own: readonly Site[]): Piece | undefined {
    if (this.#resolved.has(name)) return this.#resolved.get(name);
    // A value that is made of itself has no end.
    this.#resolved.set(name, undefined);
    const pieces = own.flatMap(({ value }) => this.#pieces(value));
    const result = together(pieces);
    this.#resolved.set(name, result);
    return result;
  }

  #pieces(value: Site['value']): readonly Piece[] {
    if ('known' in value) return [value];
    const words: readonly Word[] = 'type' in value ? [value] : value;
    return words.flatMap((word) =>
      word.parts === undefined || word.parts.length === 0
        ? [literal(word.value)]
        : fieldsOf(word.parts, this, !Array.isArray(value)).map((piece) =>
            // A list of files to go through: their names tell of them.
            Array.isArray(value) && piece.glob ? { ...piece, reveals: true } : piece,
          ),
    );
  }

  #all(): Map<string, Site[]> {
    if (this.#sites !== undefined) return this.#sites;
    this.#sites = new Map();
    this.#collect(this.#script, { from: Number.POSITIVE_INFINITY, until: 0 });
    return this.#sites;
  }

  #add(name: string, site: Site): void {
    const own = this.#sites?.get(name);
    if (own === undefined) this.#sites?.set(name, [site]);
    else own.push(site);
  }

  #collect(node: SyntaxNode, sure: { readonly from: number; readonly until: number }): void {
    const never = { from: Number.POSITIVE_INFINITY, until: 0 };
    switch (node.type) {
      case 'Script':
      case 'CompoundList':
        for (const statement of node.commands) {
          const isPlain =
            statement.command.type === 'Command' &&
            statement.command.name === undefined &&
            !statement.background;
          this.#collect(statement.command, isPlain ? { from: statement.end, until: node.end } : never);
        }
        return;
      case 'AndOr': {
        const isChain = node.operators.every((operator) => operator === '&&');
        for (const command of node.commands)
          this.#collect(command, isChain ? { from: command.end, until: node.end } : never);
        return;
      }
      case 'Assignment':
        this.#assigned(node, sure);
        break;
      case 'For':
      case 'Select':
        this.#add(node.name.value, {
          value: node.wordlist ?? hidden,
          from: node.body.pos,
          until: node.body.end,
        });
        break;
      case 'Pipeline':
        this.#pipeline(node.commands);
        break;
      case 'Command':
        this.#command(node, sure);
        return;
      case 'ParameterExpansion':
        if (node.operation?.type === 'Default' && /=/.test(node.operation.operator))
          this.#add(node.parameter, { value: hidden, ...never });
        break;
      case 'ArithmeticBinary':
        if (/^[^<>=!]*=$|^(<<|>>)=$/.test(node.operator) && node.left.type === 'ArithmeticWord')
          this.#add(node.left.value, { value: anyName, ...never });
        break;
      case 'ArithmeticUnary':
        if (/^(\+\+|--)$/.test(node.operator) && node.operand.type === 'ArithmeticWord')
          this.#add(node.operand.value, { value: anyName, ...never });
        break;
      default:
    }
    forEachChild(node, (child) => this.#collect(child, never));
  }

  #command(
    node: Extract<SyntaxNode, { type: 'Command' }>,
    sure: { readonly from: number; readonly until: number },
  ): void {
    const name = node.name?.value ?? '';
    const never = { from: Number.POSITIVE_INFINITY, until: 0 };
    if (/^(eval|source|\.|trap|alias|builtin|command)$/.test(name)) {
      if (!/^(builtin|command)$/.test(name)) this.#isOpaque = true;
      else if (
        node.args.some(
          (arg) =>
            arg.type === 'Word' &&
            /^(eval|source|\.|read|printf|declare|typeset|local|export|mapfile|readarray|getopts|let|set|unset)$/.test(
              arg.value,
            ),
        )
      )
        this.#isOpaque = true;
    }
    if (
      !this.#listed.has(node.pos) &&
      /^(read|mapfile|readarray|getopts|printf|unset|let|wait|declare|typeset|local|export|readonly)$/.test(
        name,
      )
    ) {
      const makesArrays =
        /^(mapfile|readarray)$/.test(name) ||
        node.args.some((arg) => arg.type === 'Word' && /^-[a-zA-Z]*[aA]/.test(arg.value));
      for (const arg of makesArrays ? node.args : []) {
        const found = arg.type === 'Word' ? /^[A-Za-z_]\w*/.exec(arg.value)?.[0] : arg.name;
        if (found !== undefined) this.#arrays.add(found);
      }
      for (const arg of node.args) {
        for (const attached of arg.type === 'Word' ? attachedNames(arg.value) : [])
          this.#add(attached, { value: hidden, ...never });
        const found = arg.type === 'Word' ? /^[A-Za-z_]\w*/.exec(arg.value) : null;
        // `read x`, `declare x`, `export "x=…"`: not followed. A bare name behind export keeps its value.
        if (
          found === null ||
          (/^(export|readonly)$/.test(name) && arg.type === 'Word' && !arg.value.includes('='))
        )
          continue;
        this.#add(found[0], { value: hidden, ...never });
      }
    }
    const isPlain = node.name === undefined;
    for (const each of node.prefix) this.#collect(each, isPlain ? sure : never);
    for (const each of node.suffix) this.#collect(each, sure);
  }

  #assigned(node: Assignment, sure: { readonly from: number; readonly until: number }): void {
    const isPlain = node.value.type === 'Word' && node.index === undefined && node.append !== true;
    if (node.value.type !== 'Word' || node.index !== undefined) this.#arrays.add(node.name);
    this.#add(node.name, { value: isPlain ? (node.value as Word) : hidden, ...sure });
  }

  /** `git ls-files | while read -r f`: the names are of this folder. */
  #pipeline(commands: Extract<SyntaxNode, { type: 'Pipeline' }>['commands']): void {
    for (const [at, stage] of commands.entries()) {
      if (stage.type !== 'While' || !listsNames(commands.slice(0, at))) continue;
      const read = stage.clause.commands[0]?.command;
      if (read?.type !== 'Command' || read.name?.value !== 'read' || stage.clause.commands.length !== 1)
        continue;
      const names = read.args.flatMap((arg) =>
        arg.type === 'Word' && !arg.value.startsWith('-') ? [arg.value] : [],
      );
      const [name] = names;
      if (names.length !== 1 || name === undefined) continue;
      this.#listed.add(read.pos);
      const isSure = !listsEmptyLines(commands.slice(0, at));
      const from = isSure ? stage.body.pos : Number.POSITIVE_INFINITY;
      const value = listsSecrets(commands.slice(0, at)) ? ownSecret : ownName;
      this.#add(name, { value, from, until: stage.body.end });
    }
  }
}

/** `printf -vx` and `read -rax` set `x`: every end of the letters may be a name. */
const attachedNames = (word: string): readonly string[] => {
  const letters = /^-([A-Za-z]\w*)/.exec(word)?.[1] ?? '';
  return [...letters].map((_, at) => letters.slice(at + 1)).filter((name) => /^[A-Za-z_]/.test(name));
};

/** One value is that value. Several are a pattern, if each of them is a plain name of this folder. */
function together(pieces: readonly Piece[]): Piece | undefined {
  const [first] = pieces;
  if (first === undefined || pieces.some(({ known }) => !known)) return undefined;
  if (pieces.every(({ text }) => text === first.text)) return first;
  if (!pieces.every(({ text }) => isPlainName(text))) return undefined;
  return pieces.some(({ reveals }) => reveals === true) ? ownName : anyName;
}

/** SECURITY: no option, no way out of this folder, no name with a dot at its front. */
const isPlainName = (text: string): boolean =>
  /^[\w*?%+,:@=][\w*?%+,:@= .-]*(\/[\w*?%+,:@=][\w*?%+,:@= .-]*)*$/.test(text);

const isNumberWord = (value: Site['value']): boolean =>
  'type' in value
    ? value.type === 'Word' && (/^-?\d+$/.test(value.value) || isNumericWord(value))
    : Array.isArray(value) &&
      value.every((word: Word) => /^(-?\d+|\{\d+\.\.\d+(\.\.\d+)?\})$/.test(word.text));

const isNumericWord = ({ parts }: Word): boolean => {
  const [only, ...more] = parts ?? [];
  const part = only?.type === 'DoubleQuoted' && only.parts.length === 1 ? only.parts[0] : only;
  if (part === undefined || more.length > 0) return false;
  if (part.type === 'ArithmeticExpansion') return true;
  if (part.type === 'CommandExpansion') return part.script !== undefined && isNumeric(part.script);
  return part.type === 'ParameterExpansion' && part.prefix === '#';
};
