/**
 * Text as a terminal may get it. Files, labels, arguments, patches and messages are written by others: what a terminal obeys in
 * them (C0, DEL, C1), and what changes the order or the look of a line (bidi and zero-width characters), is shown as its code.
 * Colours of our own are put in by `colours`, with a mark that nobody else can write.
 */

import { randomBytes } from 'node:crypto';
import pc from 'picocolors';
import { printable } from './table.ts';

const mark = `\u0000${randomBytes(8).toString('hex')}`;
const obeyed = new RegExp(`${mark}(\\d+);|(?![\\n\\t])\\p{C}|[\\u2028\\u2029]`, 'gu');

/** Whether it has colours of ours, which only `harmless` makes those of a terminal. */
export const isPainted = (text: string): boolean => text.includes(mark);

/** Line ends and tabs stay. */
export function harmless(text: string): string {
  return text.replace(obeyed, (found, code: string | undefined) =>
    code === undefined ? codeOf(found) : `\x1b[${code}m`,
  );
}

const codeOf = (character: string): string =>
  /\p{C}/u.test(character) ? printable(character) : `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;

const paint =
  (on: number, off: number) =>
  (text: string): string =>
    pc.isColorSupported ? `${mark}${on};${text}${mark}${off};` : text;

/** For text that goes through `print` or `note`. */
export const colours = {
  bold: paint(1, 22),
  dim: paint(2, 22),
  red: paint(31, 39),
  green: paint(32, 39),
  yellow: paint(33, 39),
  cyan: paint(36, 39),
} as const;
