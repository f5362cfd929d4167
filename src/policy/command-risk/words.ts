/** A word of a command as the shell would hand it over, as far as that can be known without running anything. */

import type { Command, ParsedScript, Word, WordPart } from 'unbash';
import type { Span } from './risk.ts';

export interface Arg {
  /** After quotes and escapes. Where it is not known, what is written. */
  readonly text: string;
  /** Known before anything runs. A glob is known as a pattern. */
  readonly known: boolean;
  /** Holds a pattern that the shell replaces by names of files. */
  readonly glob: boolean;
  /** As it is written, for paths of Windows: a shell takes their backslashes away. */
  readonly raw: string;
  readonly span: Span;
}

/** Where the words of a script are in the text that was judged. */
export type Place = (node: { readonly pos: number; readonly end: number }) => Span;

/** Words that come from elsewhere: what `xargs` reads, what `find` puts for {}. */
export const unknownArg = (span: Span): Arg => ({ text: '', known: false, glob: false, raw: '', span });

export function toArg(word: Word, place: Place): Arg {
  const parts = word.parts ?? [];
  const span = place(word);
  if (parts.length === 0) return { text: word.value, known: true, glob: false, raw: word.text, span };
  const pieces = parts.map(pieceOf);
  const known = pieces.every((piece) => piece.known);
  return {
    text: known ? pieces.map((piece) => piece.text).join('') : word.value,
    known,
    glob: pieces.some((piece) => piece.glob),
    raw: word.text,
    span,
  };
}

interface Piece {
  readonly text: string;
  readonly known: boolean;
  readonly glob: boolean;
}

const literal = (text: string): Piece => ({ text, known: true, glob: false });
const hidden: Piece = { text: '', known: false, glob: false };

function pieceOf(part: WordPart): Piece {
  switch (part.type) {
    case 'Literal':
    case 'SingleQuoted':
    case 'AnsiCQuoted':
      return literal(part.value);
    case 'Glob':
      return { text: part.text, known: true, glob: true };
    case 'ExtendedGlob':
    case 'BraceExpansion':
      return { text: part.text, known: !part.text.includes('$') && !part.text.includes('`'), glob: true };
    case 'DoubleQuoted':
    case 'LocaleString': {
      const inside = part.parts.map(pieceOf);
      if (!inside.every((piece) => piece.known)) return hidden;
      return literal(inside.map((piece) => piece.text).join(''));
    }
    case 'SimpleExpansion':
    case 'ParameterExpansion':
      return knownVariable(part.text) ?? hidden;
    case 'CommandExpansion': {
      const output = part.script === undefined ? undefined : staticOutput(part.script);
      return output === undefined ? hidden : literal(output);
    }
    case 'ArithmeticExpansion':
    case 'ProcessSubstitution':
      return hidden;
  }
}

/** Two that mean a place, whoever runs it. */
function knownVariable(text: string): Piece | undefined {
  if (/^\$(?:HOME|\{HOME\})$/.test(text)) return literal('~');
  if (/^\$(?:PWD|\{PWD\})$/.test(text)) return literal('.');
  return undefined;
}

/** What a script prints that is nothing but an `echo` or a `printf` of words that are known. */
export function staticOutput(script: ParsedScript): string | undefined {
  const only = script.commands[0]?.command;
  if (script.commands.length !== 1 || script.errors !== undefined || only?.type !== 'Command')
    return undefined;
  return printed(only);
}

export function printed(command: Command): string | undefined {
  const name = command.name?.value;
  if (name !== 'echo' && name !== 'printf') return undefined;
  if (command.redirects.length > 0) return undefined;
  const nowhere: Place = () => ({ start: 0, end: 0 });
  const args = command.args.map((arg) => (arg.type === 'Word' ? toArg(arg, nowhere) : undefined));
  if (!args.every((arg): arg is Arg => arg?.known === true)) return undefined;
  const words = args.map((arg) => arg.text).filter((text) => name !== 'echo' || !/^-[neE]+$/.test(text));
  if (name === 'printf' && words.length > 1 && /^%[sb](\\n)?$/.test(words[0] ?? '')) words.shift();
  return words.join(' ').replaceAll('\\n', '\n');
}
