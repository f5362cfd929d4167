/** Whether a shell's pattern can stand for a name. In doubt it can. Pure. */

const cache = new Map<string, RegExp | undefined>();
const mostCached = 500;

export const isPattern = (text: string): boolean => /[*?[({]/.test(text);

/** One part of a path against one part of another; both in lower case, either may be a pattern. */
export function canBe(pattern: string, name: string): boolean {
  if (pattern === name) return true;
  if (!isPattern(pattern))
    return isPattern(name) && pattern !== '' && (toRegExp(name)?.test(pattern) ?? true);
  // A dot at the front has to be written, unless an extended pattern holds it.
  if (name.startsWith('.') && /^[*?[]/.test(pattern) && !pattern.includes('(')) return false;
  if (isPattern(name)) return overlap(pattern, name);
  return toRegExp(pattern)?.test(name) ?? true;
}

/** Whether some name fits both patterns. */
function overlap(left: string, right: string): boolean {
  if (/[({]/.test(left + right)) return true;
  const [a, b] = [tokens(left), tokens(right)];
  const known = new Map<number, boolean>();
  const fits = (at: number, to: number): boolean => {
    const key = at * (b.length + 1) + to;
    const before = known.get(key);
    if (before !== undefined) return before;
    known.set(key, false);
    const [one, two] = [a[at], b[to]];
    const found =
      one === '*' || two === '*'
        ? (one === '*' && fits(at + 1, to)) ||
          (two === '*' && fits(at, to + 1)) ||
          (one === '*' && two !== undefined && fits(at, to + 1)) ||
          (two === '*' && one !== undefined && fits(at + 1, to))
        : one === undefined || two === undefined
          ? one === two
          : (one === two || one === '?' || two === '?') && fits(at + 1, to + 1);
    known.set(key, found);
    return found;
  };
  return fits(0, 0);
}

/** Letters, `*` and `?`; a choice of letters is any of them. */
const tokens = (pattern: string): readonly string[] => [
  ...pattern.replace(/\[[!^]?(?:\[:\w+:\]|[^\]])+\]/g, '?').replace(/\*+/g, '*'),
];

/** As `canBe`, where a star stands for a dot at the front as well: in `find -name` and in a pathspec. */
export const canBeHidden = (pattern: string, name: string): boolean =>
  pattern === name || (isPattern(pattern) && (toRegExp(pattern)?.test(name) ?? true));

function toRegExp(pattern: string): RegExp | undefined {
  if (cache.has(pattern)) return cache.get(pattern);
  if (cache.size > mostCached) cache.clear();
  const made = build(pattern);
  cache.set(pattern, made);
  return made;
}

/** Undefined: too much of a pattern to say. */
function build(pattern: string): RegExp | undefined {
  if (/[({]/.test(pattern)) return undefined;
  const source = pattern
    .replace(/\[([!^]?)((?:\[:\w+:\]|[^\]])+)\]/g, '\0')
    .replace(/[.+^$|\\]/g, '\\$&')
    .replace(/\*+/g, '.*')
    .replaceAll('?', '.')
    .replaceAll('\0', '.')
    .replace(/[[\]]/g, '\\$&');
  try {
    return new RegExp(`^${source}$`, 's');
  } catch {
    return undefined;
  }
}
