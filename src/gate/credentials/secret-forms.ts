/**
 * The spellings in which a server may return a secret: as it is (in either case), with characters escaped as JSON, percent,
 * quoted-printable, HTML or CSS does it, as base64 at each of three alignments, as hex. A form is a list of places. Forms that need
 * computation (other bases, reversal, encryption) are out of scope: docs/secrets.md.
 */

import { type Spelling, spellingOf } from './spelling-graph.ts';

export interface Place {
  readonly spelling: Spelling;
  /** How much of a stream is held back for it; a spelling may be longer by zeros and separators. */
  readonly longestBytes: number;
}

export type Form = readonly Place[];

/** Twice what usual escapes have, for UTF-16. */
const escapedBytes = 24;
const wrapped: readonly string[] = ['\r', '\n', ' ', '\t'];
const softBreaks = ['=\r\n', '=\n'];

/** Places by what fits there. They take a millisecond each to make, and all values have the same ones again and again. */
export type Places = Map<string, Place>;

/** All forms of all values, which are Latin-1 text. */
export function formsOf(values: readonly string[], places: Places = new Map()): readonly Form[] {
  const shared: Shared = (key, make) => {
    const known = places.get(key) ?? make();
    places.set(key, known);
    return known;
  };
  return values.flatMap((value) => {
    const bytes = Buffer.from(value, 'latin1');
    const aligned = [0, 1, 2].map((before) => base64Form(bytes, before, shared));
    return [escapedForm(value, shared), hexForm(bytes, shared), ...aligned];
  });
}

type Shared = (key: string, make: () => Place) => Place;

/** Names of headers lose their case on the way, so either case counts. */
function escapedForm(value: string, shared: Shared): Form {
  return [...value].map((one, at) =>
    shared(`character ${at === 0} ${one.toLowerCase()}`, () => ({
      spelling: spellingOf({
        literals: [],
        escaped: /[A-Za-z]/.test(one) ? [one.toLowerCase(), one.toUpperCase()] : [one],
        separators: at === 0 ? [] : softBreaks,
        escapedSeparators: [],
      }),
      longestBytes: escapedBytes,
    })),
  );
}

function hexForm(bytes: Buffer, shared: Shared): Form {
  return [...bytes.toString('hex')].map((digit, at) =>
    shared(`hex ${at === 0} ${digit}`, () => ({
      spelling: spellingOf({
        literals: [...new Set([digit, digit.toUpperCase()])],
        escaped: [],
        separators: at === 0 ? [] : ['0x', ...softBreaks],
        escapedSeparators: at === 0 ? [] : [...wrapped, ':', '-', ','],
      }),
      longestBytes: 2,
    })),
  );
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const urlAlphabet = `${alphabet.slice(0, 62)}-_`;

/**
 * `before`: how many bytes of the same group of three precede the value. The first and the last character may hold bits of
 * neighbours: every character with the value's bits fits there. Lines may be wrapped anywhere.
 */
function base64Form(bytes: Buffer, before: number, shared: Shared): Form {
  const from = before * 8;
  const to = from + bytes.length * 8;
  const places: Place[] = [];
  for (let at = Math.floor(from / 6); at * 6 < to; at++) {
    const fitting = [...alphabet].filter((_, code) => agrees(code, at * 6, bytes, from, to));
    const isFirst = places.length === 0;
    places.push(shared(`base64 ${isFirst} ${fitting.join('')}`, () => base64Place(fitting, isFirst)));
  }
  return places;
}

/** In both alphabets; `/` and the like also escaped. */
function base64Place(characters: readonly string[], isFirst: boolean): Place {
  const both = characters.flatMap((one) => [one, urlAlphabet[alphabet.indexOf(one)] ?? one]);
  const all = [...new Set(both)];
  const isPlain = (one: string): boolean => /[A-Za-z0-9]/.test(one);
  const escaped = all.filter((one) => !isPlain(one));
  return {
    spelling: spellingOf({
      literals: all.filter(isPlain),
      escaped,
      separators: isFirst ? [] : softBreaks,
      escapedSeparators: isFirst ? [] : wrapped,
    }),
    longestBytes: escaped.length > 0 ? escapedBytes : 1,
  };
}

/** Whether the six bits of `code`, which begin at bit `first`, have the value's bits where both overlap. */
function agrees(code: number, first: number, bytes: Buffer, from: number, to: number): boolean {
  for (let bit = Math.max(first, from); bit < Math.min(first + 6, to); bit++) {
    const inValue = bit - from;
    const wanted = ((bytes[inValue >> 3] ?? 0) >> (7 - (inValue & 7))) & 1;
    if (((code >> (5 - (bit - first))) & 1) !== wanted) return false;
  }
  return true;
}
