/** Versions as Semantic Versioning orders them, without build metadata. */

const pattern = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?$/;

export const isVersion = (text: string): boolean => pattern.test(text);

/** Below zero: `a` is older than `b`. Throws a RangeError for what is not a version. */
export function compareVersions(a: string, b: string): number {
  const [first, second] = [parse(a), parse(b)];
  for (const [index, number] of first.numbers.entries()) {
    const difference = number - (second.numbers[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return comparePrereleases(first.prerelease, second.prerelease);
}

function parse(text: string): {
  readonly numbers: readonly number[];
  readonly prerelease: readonly string[];
} {
  const match = pattern.exec(text);
  if (match === null) throw new RangeError(`${JSON.stringify(text)} is not a version`);
  return { numbers: match.slice(1, 4).map(Number), prerelease: match[4]?.split('.') ?? [] };
}

function comparePrereleases(a: readonly string[], b: readonly string[]): number {
  // 1.0.0-rc.1 comes before 1.0.0.
  if (a.length === 0 || b.length === 0) return b.length - a.length;
  for (const [index, part] of a.entries()) {
    const other = b[index];
    if (other === undefined) return 1;
    const difference = compareParts(part, other);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Numbers by value, and before other identifiers; those by their characters. */
function compareParts(a: string, b: string): number {
  const isNumber = (text: string): boolean => /^\d+$/.test(text);
  if (isNumber(a) && isNumber(b)) return Number(a) - Number(b);
  if (isNumber(a) !== isNumber(b)) return isNumber(a) ? -1 : 1;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
