/**
 * The spellings in which a server may return a secret: as it is (in either case), with characters escaped as JSON, percent,
 * quoted-printable or HTML does it, as base64 at each of three alignments, as hex. A form is a list of places; each place
 * accepts any of its tokens. Forms that need computation (other bases, reversal, encryption) are out of scope: docs/secrets.md.
 */

/** The bytes of one token as Latin-1 text. */
type Token = string;

/** One place of a form. `skipped` tokens may stand before the place and belong to the match. */
export interface Place {
  readonly tokens: readonly Token[];
  readonly skipped: readonly Token[];
}

export type Form = readonly Place[];

/** The longest token decides how much of a stream is held back. */
const mostTokenBytes = 12;

/** JSON in JSON in JSON: each level doubles the backslashes, and most writers stop at a few. */
const backslashes = ['\\', '\\\\', '\\\\\\'] as const;
const percents = ['%', '%25', '%2525', '='] as const;
const ampersands = ['&', '&amp;'] as const;

const entityNames: Readonly<Record<string, readonly string[]>> = {
  '!': ['excl'],
  '"': ['quot', 'QUOT'],
  '#': ['num'],
  $: ['dollar'],
  '%': ['percnt'],
  '&': ['amp', 'AMP'],
  "'": ['apos'],
  '(': ['lpar'],
  ')': ['rpar'],
  '*': ['ast', 'midast'],
  '+': ['plus'],
  ',': ['comma'],
  '.': ['period'],
  '/': ['sol'],
  ':': ['colon'],
  ';': ['semi'],
  '<': ['lt', 'LT'],
  '=': ['equals'],
  '>': ['gt', 'GT'],
  '?': ['quest'],
  '@': ['commat'],
  '[': ['lsqb', 'lbrack'],
  '\\': ['bsol'],
  ']': ['rsqb', 'rbrack'],
  '^': ['Hat'],
  _: ['lowbar'],
  '`': ['grave'],
  '{': ['lcub', 'lbrace'],
  '|': ['vert', 'verbar'],
  '}': ['rcub', 'rbrace'],
};

/** All forms of all values, which are Latin-1 text. */
export function formsOf(values: readonly string[]): readonly Form[] {
  const places = new Map<string, Place>();
  // A place has hundreds of tokens, and a long value the same places again and again.
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
  const cases = (one: string): readonly string[] =>
    /[A-Za-z]/.test(one) ? [one.toLowerCase(), one.toUpperCase()] : [one];
  return [...value].map((one) =>
    shared(`character ${one.toLowerCase()}`, () => place(cases(one).flatMap(spellings))),
  );
}

function hexForm(bytes: Buffer, shared: Shared): Form {
  return [...bytes.toString('hex')].map((digit) =>
    shared(`hex ${digit}`, () => place([digit, digit.toUpperCase()])),
  );
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const urlAlphabet = `${alphabet.slice(0, 62)}-_`;
const lineEnds = ['\r', '\n', ...backslashes.flatMap((run) => [`${run}r`, `${run}n`])];

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
    const skipped = places.length === 0 ? [] : lineEnds;
    places.push(
      shared(`base64 ${skipped.length} ${fitting.join('')}`, () => ({
        tokens: base64Tokens(fitting),
        skipped,
      })),
    );
  }
  return places;
}

/** In both alphabets; `/` and the like also escaped. */
function base64Tokens(characters: readonly string[]): readonly Token[] {
  const both = characters.flatMap((one) => [one, urlAlphabet[alphabet.indexOf(one)] ?? one]);
  return [...new Set(both)].flatMap((one) => (/[A-Za-z0-9]/.test(one) ? [one] : spellings(one)));
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

const place = (tokens: readonly Token[]): Place => ({ tokens: [...new Set(tokens)], skipped: [] });

/** One character as it is and in each escaped spelling. */
function spellings(character: string): readonly Token[] {
  const code = character.charCodeAt(0);
  const hexes = casesOf(code.toString(16).padStart(2, '0'));
  return [
    character,
    ...backslashes.flatMap((run) => [
      ...(/[A-Za-z0-9]/.test(character) ? [] : [`${run}${character}`]),
      ...hexes.flatMap((hex) => [`${run}u00${hex}`, `${run}x${hex}`]),
    ]),
    ...percents.flatMap((sign) => hexes.map((hex) => `${sign}${hex}`)),
    ...ampersands.flatMap((sign) => entities(sign, character, code, hexes)),
  ];
}

function entities(sign: string, character: string, code: number, hexes: readonly string[]): readonly Token[] {
  const zeros = sign === '&' ? ['', '0', '00'] : [''];
  const numbers = zeros.flatMap((zero) => [
    `${sign}#${zero}${code}`,
    ...hexes.flatMap((hex) => [`${sign}#x${zero}${hex}`, `${sign}#X${zero}${hex}`]),
  ]);
  // Readers of HTML do not insist on the semicolon of a number.
  const named = (entityNames[character] ?? []).map((name) => `${sign}${name};`);
  return [...numbers, ...numbers.map((number) => `${number};`), ...named].filter(
    (token) => token.length <= mostTokenBytes,
  );
}

/** Two hex digits in every mixture of cases. */
function casesOf(hex: string): readonly string[] {
  const [high = '', low = ''] = hex;
  const both = [high, high.toUpperCase()].flatMap((one) => [one + low, one + low.toUpperCase()]);
  return [...new Set(both)];
}
