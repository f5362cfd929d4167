/**
 * The graph of one place of a form: every spelling of the characters that fit there, byte by byte. Escapes compose because they
 * share nodes: what stands for a backslash, a percent sign or an ampersand leads to the same node however it is spelled itself, so
 * JSON in JSON, percent-encoded JSON and HTML within JSON need no list. Runs of zeros and of backslashes are loops.
 */

/** A state of the place, after some bytes. */
export interface SpellingNode {
  readonly id: number;
  readonly next: Map<number, SpellingNode>;
  /** The bytes that lead here, each with the nodes that it comes from. */
  readonly before: Map<number, SpellingNode[]>;
  /** A spelling is complete here. */
  ends: boolean;
  /** A separator is complete here: the place is still to come. */
  skips: boolean;
}

export interface Spelling {
  /** The first one is where the place begins; nothing leads there. */
  readonly nodes: readonly SpellingNode[];
  readonly single: ReadonlySet<number>;
  /** Nodes where a spelling, and where a separator before it, is complete. */
  readonly ends: readonly number[];
  readonly skips: readonly number[];
}

export interface PlaceRule {
  /** Any of these fits as it is. */
  readonly literals: readonly string[];
  /** Any of these fits in an escaped spelling, too. */
  readonly escaped: readonly string[];
  /** May stand before the place, as they are. */
  readonly separators: readonly string[];
  /** May stand before the place in an escaped spelling. */
  readonly escapedSeparators: readonly string[];
}

const entityNames: Readonly<Record<string, readonly string[]>> = {
  '\n': ['NewLine'],
  '\t': ['Tab'],
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
  '-': ['hyphen', 'dash'],
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

const shortNames: Readonly<Record<string, string>> = { '\n': 'n', '\r': 'r', '\t': 't' };

/** Nodes by number; several may follow one on the same byte. */
class Draft {
  readonly edges: Map<number, number[]>[] = [new Map()];

  node(): number {
    this.edges.push(new Map());
    return this.edges.length - 1;
  }

  path(from: number, texts: readonly string[], to: number): void {
    for (const text of texts) {
      const bytes = [...Buffer.from(text, 'latin1')];
      let at = from;
      for (const [index, byte] of bytes.entries()) {
        const next = index === bytes.length - 1 ? to : this.node();
        const edges = this.edges[at];
        edges?.set(byte, [...(edges.get(byte) ?? []), next]);
        at = next;
      }
    }
  }
}

export function spellingOf(rule: PlaceRule): Spelling {
  const draft = new Draft();
  const ends = new Set<number>();
  const skips = new Set<number>();
  drawSpellings(draft, rule.literals, rule.escaped, ends);
  drawSpellings(draft, rule.separators, rule.escapedSeparators, skips);
  return determined(draft, ends, skips);
}

function drawSpellings(
  draft: Draft,
  literals: readonly string[],
  escaped: readonly string[],
  complete: Set<number>,
): void {
  const end = draft.node();
  complete.add(end);
  draft.path(0, [...literals, ...escaped], end);
  if (escaped.length === 0) return;
  const hexes = escaped.flatMap((one) => casesOf(hexOf(one)));
  const [backslash, percent, quoted, ampersand, number, hexNumber, name, braces, zeros] = Array.from(
    { length: 9 },
    () => draft.node(),
  ) as [number, number, number, number, number, number, number, number, number];
  const numberEnd = draft.node();
  const braceEnd = draft.node();
  complete.add(numberEnd);

  for (const from of [0, backslash]) {
    draft.path(from, ['\\', '&#92;', '&#x5c;', '&#x5C;', '&bsol;'], backslash);
    draft.path(from, ['%', '&#37;', '&#x25;', '&percnt;'], percent);
    draft.path(from, ['&'], ampersand);
    draft.path(from, ['='], quoted);
  }
  draft.path(backslash, ['u005c', 'u005C', 'x5c', 'x5C'], backslash);
  draft.path(backslash, ['u0025', 'x25'], percent);
  draft.path(backslash, ['u0026', 'x26'], ampersand);
  draft.path(backslash, ['u003d', 'u003D', 'x3d', 'x3D'], quoted);
  draft.path(percent, ['25'], percent);
  draft.path(percent, ['5c', '5C'], backslash);
  draft.path(percent, ['26'], ampersand);
  draft.path(ampersand, ['amp;', 'AMP;', '#38;', '#038;', '#x26;', '#X26;', 'amp%3B', 'amp%3b'], ampersand);
  draft.path(ampersand, ['#', '%23', '%2523'], number);

  draft.path(backslash, [...escaped.filter((one) => !/[A-Za-z0-9]/.test(one)), ...shortOf(escaped)], end);
  draft.path(
    backslash,
    hexes.flatMap((hex) => [`u00${hex}`, `x${hex}`, hex]),
    end,
  );
  draft.path(backslash, escaped.map(octalOf), end);
  draft.path(backslash, ['u{', 'x{'], braces);
  draft.path(braces, ['0'], braces);
  draft.path(braces, hexes, braceEnd);
  draft.path(braceEnd, ['}'], end);
  draft.path(backslash, ['U0', '0'], zeros);
  draft.path(zeros, ['0'], zeros);
  draft.path(zeros, hexes, end);
  draft.path(
    percent,
    hexes.flatMap((hex) => [hex, `u00${hex}`, `U00${hex}`]),
    end,
  );
  draft.path(quoted, ['3D', '3d'], quoted);
  draft.path(quoted, hexes, end);
  draft.path(number, ['0'], number);
  draft.path(
    number,
    escaped.map((one) => String(one.charCodeAt(0))),
    numberEnd,
  );
  draft.path(number, ['x', 'X'], hexNumber);
  draft.path(hexNumber, ['0'], hexNumber);
  // A code below 16 may have one digit.
  draft.path(
    hexNumber,
    hexes.flatMap((hex) => (hex.startsWith('0') ? [hex.slice(1)] : [hex])),
    numberEnd,
  );
  draft.path(
    ampersand,
    escaped.flatMap((one) => entityNames[one] ?? []),
    name,
  );
  // Readers of HTML do not insist on the semicolon of a number.
  for (const from of [numberEnd, name]) draft.path(from, [';', '%3B', '%3b', '%253B', '%253b'], end);
}

const hexOf = (one: string): string => one.charCodeAt(0).toString(16).padStart(2, '0');
const octalOf = (one: string): string => one.charCodeAt(0).toString(8).padStart(3, '0');
const shortOf = (all: readonly string[]): readonly string[] => all.flatMap((one) => shortNames[one] ?? []);

/** Two hex digits in every mixture of cases. */
function casesOf(hex: string): readonly string[] {
  const [high = '', low = ''] = hex;
  const both = [high, high.toUpperCase()].flatMap((one) => [one + low, one + low.toUpperCase()]);
  return [...new Set(both)];
}

/** One node for each set of nodes that the same bytes lead to, so that reading needs no choice. */
function determined(draft: Draft, ends: ReadonlySet<number>, skips: ReadonlySet<number>): Spelling {
  const nodes: SpellingNode[] = [];
  const sets: (readonly number[])[] = [];
  const byKey = new Map<string, SpellingNode>();
  const nodeOf = (set: readonly number[]): SpellingNode => {
    const sorted = [...new Set(set)].sort((a, b) => a - b);
    const key = sorted.join(' ');
    const known = byKey.get(key);
    if (known !== undefined) return known;
    const made: SpellingNode = {
      id: nodes.length,
      next: new Map(),
      before: new Map(),
      ends: sorted.some((one) => ends.has(one)),
      skips: sorted.some((one) => skips.has(one)),
    };
    nodes.push(made);
    sets.push(sorted);
    byKey.set(key, made);
    return made;
  };
  nodeOf([0]);
  for (let at = 0; at < nodes.length; at++) {
    const node = nodes[at];
    const reached = new Map<number, number[]>();
    for (const one of sets[at] ?? []) {
      for (const [byte, targets] of draft.edges[one] ?? []) {
        reached.set(byte, [...(reached.get(byte) ?? []), ...targets]);
      }
    }
    for (const [byte, targets] of reached) {
      const next = nodeOf(targets);
      if (node === undefined) continue;
      node.next.set(byte, next);
      next.before.set(byte, [...(next.before.get(byte) ?? []), node]);
    }
  }
  const single = new Set([...(nodes[0]?.next ?? [])].flatMap(([byte, { ends }]) => (ends ? [byte] : [])));
  const those = (which: 'ends' | 'skips'): readonly number[] =>
    nodes.flatMap((node) => (node[which] ? [node.id] : []));
  return { nodes, single, ends: those('ends'), skips: those('skips') };
}
