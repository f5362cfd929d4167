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
  if (isPattern(name)) return true;
  return toRegExp(pattern)?.test(name) ?? true;
}

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
  return new RegExp(`^${source}$`, 's');
}
