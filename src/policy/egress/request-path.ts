/**
 * Paths of requests against patterns of paths. A path that a server might read otherwise than it is written (encoded dots,
 * slashes or letters, empty or dot segments, parameters after `;`, bytes that are not UTF-8, characters that only look like
 * ASCII) fits nothing and is `undefined`: where paths are judged it is denied.
 */

/** Without its query, percent signs in upper case. */
export function plainRequestPath(path: string): string | undefined {
  const [before = ''] = path.split('?', 1);
  if (!/^\/[\x21-\x7e]*$/.test(before) || /[\\#;]/.test(before)) return undefined;
  // A letter that needs no encoding is encoded to hide it.
  for (const [, hex = ''] of before.matchAll(/%([0-9a-fA-F]{2})/g)) {
    const character = String.fromCharCode(Number.parseInt(hex, 16));
    if (/[A-Za-z0-9\-._~/\\;%]/.test(character)) return undefined;
  }
  const decoded = decodedPath(before);
  if (decoded === undefined || [...decoded].some(isDoubtful)) return undefined;
  const segments = decoded.slice(1).split('/');
  const isOdd = (segment: string, index: number): boolean =>
    // Some file systems drop dots and spaces at the end of a name.
    (segment === '' && index < segments.length - 1) || /^\s|[.\s]$/.test(segment);
  if (segments.some(isOdd)) return undefined;
  return before.replace(/%[0-9a-f]{2}/gi, (code) => code.toUpperCase());
}

/** The text of a path; undefined where a percent sign is not one, or where bytes are not UTF-8 (overlong forms, halves of pairs). */
export function decodedPath(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

/** Characters that are not shown, or that some servers turn into one of ASCII: full-width slashes, dotless i, superscripts. */
function isDoubtful(character: string): boolean {
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u.test(character)) return true;
  if (/^[\x20-\x7e]$/.test(character)) return false;
  const forms = [character.normalize('NFKC'), character.toLowerCase(), character.toUpperCase()];
  // One that becomes two letters (ß, SS) is a letter of its own.
  return /[\x21-\x7e]/.test(forms[0] ?? '') || forms.some((form) => /^[\x21-\x7e]$/.test(form));
}

/** `*` is any part of a segment, `**` any number of segments; everything else is itself. */
export const fitsPath = (pattern: string, path: string): boolean =>
  expressionOf(pattern, (part) => part).test(path);

/**
 * For rules that deny: servers may ignore the case, decode what needs no encoding (`%3A`), and take a path with and without a
 * slash at its end for the same. A rule that denies one of them denies all.
 */
export function fitsPathLoosely(pattern: string, path: string): boolean {
  const expression = expressionOf(pattern, folded);
  const bare = folded(path).replace(/\/$/, '');
  return expression.test(bare) || expression.test(`${bare}/`);
}

const folded = (text: string): string => (decodedPath(text) ?? text).normalize('NFKC').toLowerCase();

function expressionOf(pattern: string, read: (part: string) => string): RegExp {
  const expression = pattern
    .split(/(\*\*|\*)/)
    .map((part) =>
      part === '**' ? '.*' : part === '*' ? '[^/]*' : read(part).replace(/[.+?^${}()|[\]\\*]/g, '\\$&'),
    )
    .join('');
  return new RegExp(`^${expression}$`, 's');
}

export function pathPatternProblem(pattern: string): string | undefined {
  if (!pattern.startsWith('/')) return 'does not begin with /';
  if (plainRequestPath(pattern) === undefined || pattern.includes('?')) {
    return 'could be read in two ways: no query, no dot segments, no parameters, no encoded letters, dots or slashes';
  }
  return pattern.split('**').length > 4 ? 'has more than three **' : undefined;
}
