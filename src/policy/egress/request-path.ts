/**
 * Paths of requests against patterns of paths. A path that a server might read otherwise than it is written (encoded dots,
 * slashes or letters, empty or dot segments) fits nothing and is `undefined`: where paths are judged it is denied.
 */

/** Without its query, percent signs in upper case. */
export function plainRequestPath(path: string): string | undefined {
  const [before = ''] = path.split('?', 1);
  if (!/^\/[\x21-\x7e]*$/.test(before) || /[\\#]/.test(before)) return undefined;
  if (/%(?![0-9a-fA-F]{2})/.test(before)) return undefined;
  for (const [, hex = ''] of before.matchAll(/%([0-9a-fA-F]{2})/g)) {
    const code = Number.parseInt(hex, 16);
    if (code < 0x20 || code === 0x7f || /[A-Za-z0-9\-._~/\\;%]/.test(String.fromCharCode(code)))
      return undefined;
  }
  const segments = before.slice(1).split('/');
  const isOdd = (segment: string, index: number): boolean =>
    (segment === '' && index < segments.length - 1) || /^\.{1,2}(;|$)/.test(segment);
  if (segments.some(isOdd)) return undefined;
  return before.replace(/%[0-9a-f]{2}/gi, (code) => code.toUpperCase());
}

/** `*` is any part of a segment, `**` any number of segments; everything else is itself. */
export function fitsPath(pattern: string, path: string): boolean {
  const expression = pattern
    .split(/(\*\*|\*)/)
    .map((part) =>
      part === '**' ? '.*' : part === '*' ? '[^/]*' : part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'),
    )
    .join('');
  return new RegExp(`^${expression}$`).test(path);
}

export function pathPatternProblem(pattern: string): string | undefined {
  if (!pattern.startsWith('/')) return 'does not begin with /';
  if (plainRequestPath(pattern) === undefined || pattern.includes('?')) {
    return 'could be read in two ways: no query, no dot segments, no encoded letters, dots or slashes';
  }
  return pattern.split('**').length > 4 ? 'has more than three **' : undefined;
}
