/** The words of a command as the shell would hand them over, as far as that can be known without running anything. */

import type { Command, ParsedScript, Word, WordPart } from 'unbash';
import { expandBraces } from './braces.ts';
import { isListing, isNumeric, isSecretListing } from './outputs.ts';
import type { Span } from './risk.ts';

export interface Arg {
  /** After quotes and escapes. Where the word is not known, the source text. */
  readonly text: string;
  /** Known before anything runs. A glob is known as a pattern. */
  readonly known: boolean;
  /** Holds a pattern that stands for names: a glob, or a value of which only the kind is known. */
  readonly glob: boolean;
  /** Not known, and outside of quotes: it may become several words. */
  readonly splits?: boolean;
  /** Holds names of files or of the user: to send it away tells of them. */
  readonly reveals?: boolean;
  /** As it is written, for paths of Windows: a shell takes their backslashes away. */
  readonly raw: string;
  readonly span: Span;
}

/** Where the words of a script are in the text that was judged. */
export type Place = (node: { readonly pos: number; readonly end: number }) => Span;

/** Words that come from elsewhere: what `xargs` reads, what `find` puts for {}. */
export const unknownArg = (span: Span): Arg => ({
  text: '',
  known: false,
  glob: false,
  splits: true,
  raw: '',
  span,
});

/** Names below this folder, as `find .` or `git ls-files` print them: a pattern like any other. */
export const someName = (span: Span): Arg => ({ text: '*', known: true, glob: true, raw: '*', span });

/** One of those names that other programs execute. */
export const protectedName = (span: Span): Arg => ({ ...someName(span), text: '.git/*', raw: '.git/*' });

/** One that holds secrets. */
export const secretName = (span: Span): Arg => ({ ...someName(span), text: '.env', raw: '.env' });

/** All fields that a word becomes; usually one. */
export function toArgs(word: Word, place: Place, variables: Values): readonly Arg[] {
  const span = place(word);
  if (word.parts === undefined || word.parts.length === 0)
    return [{ text: word.value, known: true, glob: false, raw: word.text, span }];
  const isOpen = word.parts.some((part) => isExpansion(part) || part.type === 'BraceExpansion');
  return fieldsOf(word.parts, variables, false).map((field) => ({
    text: field.known ? field.text : word.value,
    known: field.known,
    glob: field.glob,
    ...(isOpen && !field.known ? { splits: true } : {}),
    ...(field.reveals === true ? { reveals: true } : {}),
    raw: word.text,
    span,
  }));
}

/** A word that the shell does not split, such as the target of a redirection. */
export function toArg(word: Word, place: Place, variables: Values): Arg {
  const fields = toArgs(word, place, variables);
  const [only] = fields;
  return fields.length === 1 && only !== undefined
    ? only
    : { text: word.value, known: false, glob: false, raw: word.text, span: place(word) };
}

/** The values of names, as far as they are known. */
export interface Values {
  valueOf(name: string, pos: number, alone: boolean): Piece;
}

export interface Piece {
  readonly text: string;
  readonly known: boolean;
  readonly glob: boolean;
  readonly reveals?: boolean;
}

export const literal = (text: string): Piece => ({ text, known: true, glob: false });
export const hidden: Piece = { text: '', known: false, glob: false };
/** A number, or a plain name of which nothing more is known. */
export const anyName: Piece = { text: '*', known: true, glob: true };
/** One of this machine: a file, a user. */
export const ownName: Piece = { ...anyName, reveals: true };

/** One of this machine that may hold secrets. */
export const ownSecret: Piece = { ...ownName, text: '.env*' };

const programPath: Piece = { ...ownName, text: '/usr/bin/*' };

const join = (left: Piece, right: Piece): Piece => ({
  text: left.text + right.text,
  known: left.known && right.known,
  glob: left.glob || right.glob,
  ...(left.reveals === true || right.reveals === true ? { reveals: true } : {}),
});

/** A word of thousands of fields is not judged field by field. */
const mostFields = 64;

export function fieldsOf(parts: readonly WordPart[], variables: Values, quoted: boolean): readonly Piece[] {
  let fields: Piece[] = [literal('')];
  for (const part of parts) {
    if (part.type === 'BraceExpansion' && !quoted) {
      const choices = expandBraces(part.text);
      if (choices === undefined) return [hidden];
      fields = fields.flatMap((field) => choices.map((text) => join(field, literal(text))));
    } else {
      const piece = pieceOf(part, { variables, alone: parts.length === 1 });
      const splits = !quoted && piece.known && isExpansion(part) && /\s/.test(piece.text);
      fields = splits
        ? appendSplit(fields, piece)
        : fields.map((field) => join(field, globbed(piece, part, quoted)));
    }
    if (fields.length > mostFields) return [hidden];
  }
  return fields;
}

const isExpansion = (part: WordPart): boolean =>
  part.type === 'SimpleExpansion' || part.type === 'ParameterExpansion' || part.type === 'CommandExpansion';

/** Without quotes a value is a pattern, too. */
const globbed = (piece: Piece, part: WordPart, quoted: boolean): Piece =>
  !quoted && isExpansion(part) && /[*?[]/.test(piece.text) ? { ...piece, glob: true } : piece;

function appendSplit(fields: readonly Piece[], { text, glob, reveals }: Piece): Piece[] {
  const pieces = text.split(/\s+/).map(
    (each): Piece => ({
      text: each,
      known: true,
      glob: glob || /[*?[]/.test(each),
      ...(reveals === true ? { reveals } : {}),
    }),
  );
  const [first = literal(''), ...rest] = pieces;
  const head = fields.slice(0, -1);
  const last = join(fields.at(-1) ?? literal(''), first);
  return [...head, last, ...rest].filter(({ text: each }) => each !== '');
}

interface Around {
  readonly variables: Values;
  /** Nothing else is in the word: an empty value leaves nothing to be misread. */
  readonly alone: boolean;
}

function pieceOf(part: WordPart, around: Around): Piece {
  switch (part.type) {
    case 'Literal':
    case 'SingleQuoted':
    case 'AnsiCQuoted':
      return literal(part.value);
    case 'Glob':
      return { text: part.text, known: !/[$`]/.test(part.text), glob: true };
    case 'ExtendedGlob':
    case 'BraceExpansion':
      return { text: part.text, known: !/[$`]/.test(part.text), glob: true };
    case 'DoubleQuoted':
    case 'LocaleString': {
      const alone = around.alone && part.parts.length === 1;
      return part.parts.map((each) => pieceOf(each, { ...around, alone })).reduce(join, literal(''));
    }
    case 'SimpleExpansion':
      return around.variables.valueOf(part.text.slice(1), part.pos, around.alone);
    case 'ParameterExpansion':
      if (part.operation === undefined && part.index === undefined) {
        if (part.prefix === '#') return anyName;
        if (part.prefix === undefined)
          return around.variables.valueOf(part.parameter, part.pos, around.alone);
      }
      return hidden;
    case 'CommandExpansion':
      return part.script === undefined ? hidden : outputOf(part.script, around);
    case 'ArithmeticExpansion':
      return anyName;
    case 'ProcessSubstitution':
      return literal('/dev/fd/63');
  }
}

function outputOf(script: ParsedScript, { variables, alone }: Around): Piece {
  const output = staticOutput(script, variables);
  if (output !== undefined) return literal(output);
  if (script.commands.length === 1 && isPwd(script)) return { ...literal('.'), reveals: true };
  if (isNumeric(script, 'always')) return anyName;
  // SECURITY: a list may be empty, and `$(ls none)/etc/x` is then `/etc/x`.
  if (!alone) return hidden;
  if (isNumeric(script)) return anyName;
  if (isWhich(script)) return programPath;
  if (!isListing(script)) return hidden;
  return isSecretListing(script) ? ownSecret : ownName;
}

/** `$(which node)` is the path of a program. */
function isWhich({ commands: [only, ...more], errors }: ParsedScript): boolean {
  const command = only?.command;
  if (errors !== undefined || more.length > 0 || command?.type !== 'Command') return false;
  const [arg, ...rest] = command.args;
  return (
    command.name?.value === 'which' &&
    rest.length + command.prefix.length + command.redirects.length === 0 &&
    arg?.type === 'Word' &&
    /^\w[\w.+-]*$/.test(arg.text)
  );
}

/** `$(pwd)` is this folder. */
function isPwd({ commands: [only], errors }: ParsedScript): boolean {
  const command = only?.command;
  if (errors !== undefined || command?.type !== 'Command' || command.name?.value !== 'pwd') return false;
  return command.prefix.length + command.suffix.length === 0;
}

const nowhere: Place = () => ({ start: 0, end: 0 });

/** The output of a script that is nothing but an `echo` or a `printf` of words that are known. */
function staticOutput(script: ParsedScript, variables: Values): string | undefined {
  const only = script.commands[0]?.command;
  if (script.commands.length !== 1 || script.errors !== undefined || only?.type !== 'Command')
    return undefined;
  return printed(only, variables)?.replace(/\n+$/, '');
}

export function printed(command: Command, variables: Values): string | undefined {
  const name = command.name?.value;
  if (name !== 'echo' && name !== 'printf') return undefined;
  if (command.redirects.length > 0) return undefined;
  const args = command.args.flatMap((arg): readonly Arg[] =>
    arg.type === 'Word' ? toArgs(arg, nowhere, variables) : [unknownArg(nowhere(arg))],
  );
  if (!args.every(({ known, glob }) => known && !glob)) return undefined;
  const words = args.map((arg) => arg.text);
  return name === 'echo' ? echoed(words) : formatted(words);
}

/** SECURITY: shells disagree on backslashes and on every option but -n, so an `echo` with one of them prints unknown text. */
function echoed(words: readonly string[]): string | undefined {
  const [first, ...rest] = words;
  const printing = first === '-n' ? rest : words;
  if (/^-[neE]+$/.test(printing[0] ?? '') || words.some((word) => word.includes('\\'))) return undefined;
  return `${printing.join(' ')}${first === '-n' ? '' : '\n'}`;
}

/** As `printf` repeats its format: only `%s`, `%%` and `\n` are known. */
function formatted([format = '', ...words]: readonly string[]): string | undefined {
  if (/^-|%(?![s%])|\\(?!n)/.test(format)) return undefined;
  const count = format.replaceAll('%%', '').split('%s').length - 1;
  if (count === 0 && words.length > 0) return undefined;
  const times = count === 0 ? 1 : Math.max(1, Math.ceil(words.length / count));
  let next = 0;
  return format
    .repeat(times)
    .replace(/%s|%%|\\n/g, (found) => (found === '%%' ? '%' : found === '%s' ? (words[next++] ?? '') : '\n'));
}
