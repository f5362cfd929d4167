/** Paths that nothing touches on the host: whether a word names one, in whatever spelling. Pure. */

import { canBe, isPattern } from './globs.ts';
import { normalise, type Whereabouts, windowsPath } from './paths.ts';
import { isExample } from './secret-names.ts';
import type { Arg } from './words.ts';

/** An entry of the list, in parts and lower case. */
export interface RestrictedPath {
  readonly entry: string;
  readonly kind: 'absolute' | 'home' | 'name' | 'windows';
  readonly parts: readonly string[];
}

function readRestricted(entry: string): RestrictedPath {
  const lower = entry.toLowerCase();
  if (entry.includes('\\')) return { entry, kind: 'windows', parts: lower.split('\\') };
  if (entry.startsWith('~/')) return { entry, kind: 'home', parts: partsOf(lower.slice(2)) };
  if (entry.startsWith('/')) return { entry, kind: 'absolute', parts: partsOf(lower) };
  return { entry, kind: 'name', parts: [lower] };
}

/** The list as it is looked up: an entry by the first part of its path, where neither holds a pattern. */
export interface RestrictedPaths {
  readonly all: readonly RestrictedPath[];
  readonly byFirst: ReadonlyMap<string, readonly RestrictedPath[]>;
  readonly names: ReadonlyMap<string, string>;
  readonly patterns: readonly RestrictedPath[];
  /** Whether a name without a pattern may fit one of those. */
  readonly mayFit: (name: string) => boolean;
}

export function indexRestricted(entries: readonly string[]): RestrictedPaths {
  const all = entries.map(readRestricted);
  const byFirst = new Map<string, RestrictedPath[]>();
  for (const each of all) {
    const key = `${each.kind} ${each.parts[0] ?? ''}`;
    byFirst.set(key, [...(byFirst.get(key) ?? []), each]);
  }
  const named = all.filter(({ kind }) => kind === 'name');
  const patterns = named.filter(({ parts: [name = ''] }) => isPattern(name));
  return {
    all,
    byFirst,
    names: new Map(named.map(({ parts: [name = ''], entry }) => [name, entry])),
    patterns,
    mayFit: unionOf(patterns.map(({ parts: [name = ''] }) => name)),
  };
}

/** All patterns in one expression: most names fit none, and are done with one look. */
function unionOf(patterns: readonly string[]): (name: string) => boolean {
  if (patterns.some((each) => /[[({\\]/.test(each))) return () => true;
  const sources = patterns.map((each) =>
    each
      .replace(/[.+^$|)\]}]/g, '\\$&')
      .replaceAll('?', '.')
      .replace(/\*+/g, '.*'),
  );
  const union = new RegExp(`^(?:${sources.join('|')})$`, 's');
  return (name) => union.test(name);
}

const partsOf = (path: string): readonly string[] =>
  path.split('/').filter((part) => part !== '' && part !== '.');

interface Look {
  readonly list: RestrictedPaths;
  readonly where: Whereabouts;
  /** The program reads all that is below a folder, so a folder above a restricted path is as bad. */
  readonly deep: boolean;
}

/** The entry that this word names, or is below; with `deep`, or is above. */
export function restrictedBy(arg: Arg, look: Look): string | undefined {
  if (!arg.known) return undefined;
  // Quoted, these letters are no patterns.
  const literal = arg.glob ? arg.text : arg.text.replace(/[*?[({]/g, '\u0001');
  for (const text of candidates(literal)) {
    const found = unixEntry(text.toLowerCase(), look);
    if (found !== undefined) return found;
  }
  return windowsEntry(windowsPath(arg) ?? arg.raw, look.list);
}

/** Options and operands carry paths behind their signs: --file=/x, if=/x, @/x, HEAD:.env, -f/x, file:///x. */
function candidates(word: string): readonly string[] {
  if (!/[=:@,]|^-/.test(word)) return [word];
  const behind = word.split(/[=:@,]/).slice(1);
  const attached = /^-[A-Za-z](.+)$/.exec(word)?.[1];
  return [word, ...behind, ...(attached === undefined ? [] : [attached])].map((text) =>
    text.replace(/^\/\/+/, '/'),
  );
}

function unixEntry(given: string, look: Look): string | undefined {
  // ~+ is the working folder.
  const text = given.replace(/^~root(?=\/|$)/, '/root').replace(/^~\+(?=\/|$)/, '.');
  if (text === '' || text.length > 4096) return undefined;
  const { where, list } = look;
  // SECURITY: a link on the way decides where `..` leads, as in /proc/self/cwd/.. .
  const before = /^(.+?)\/\.\.(\/|$)/.exec(text)?.[1];
  if (before !== undefined && !/(^|\/)\.\.?$/.test(before)) {
    const found = unixEntry(before, { ...look, deep: false });
    if (found !== undefined) return found;
  }
  const linked = behindLink(text, look);
  if (linked !== undefined) return linked;
  if (isOwn(text, where)) return namedEntry(partsOf(text), list);
  const homeless = homePath(text);
  if (homeless?.[0] === '..')
    return outsideEntry(
      homeless.filter((part) => part !== '..'),
      look,
    );
  if (homeless !== undefined) {
    // ~- and ~2 are folders that the shell was in before.
    if (/^~[-+]?\d*(\/|$)/.test(text) && !/^~(\/|$)/.test(text)) return anywhereEntry(homeless, list);
    return (
      find(among(list, 'home', homeless), (each) => match(each, homeless, 'home', look)) ??
      namedEntry(homeless, list)
    );
  }
  if (text.startsWith('/')) return absoluteEntry(partsOf(normalise(text)), look);
  const path = partsOf(normalise(text));
  const named = namedEntry(path, list);
  if (named !== undefined) return named;
  for (const base of where.bases ?? []) {
    const joined = `${base}/${text}`.toLowerCase();
    const found = isOwn(joined, where)
      ? undefined
      : unixEntry(joined, { ...look, where: { ...where, bases: [], elsewhere: false } });
    if (found !== undefined) return found;
  }
  if (path[0] === '..')
    return outsideEntry(
      path.filter((part) => part !== '..'),
      look,
    );
  return where.elsewhere ? anywhereEntry(path, list) : undefined;
}

/** Folders of the system that are links, or hold links, on many machines. */
const linkedFolder = /^\/(var\/(run|lock|mail|spool\/mail|tmp)|dev|proc|sys|s?bin|lib\w*|run|etc)(\/|$)/;

/** SECURITY: behind a folder that may be a link `..` leads anywhere: /var/run/../etc is /etc. */
function behindLink(text: string, look: Look): string | undefined {
  const [, before = '', tail = ''] = /^(.*?[^/.][^/]*)\/\.\.(?:\/(.*))?$/.exec(text) ?? [];
  if (before === '') return undefined;
  const rest = partsOf(normalise(tail)).filter((part) => part !== '..');
  return linkedFolder.test(before) ? `a path behind ${before}` : outsideEntry(rest, look);
}

const isOwn = (text: string, { cwd }: Whereabouts): boolean => {
  if (cwd === undefined || !text.startsWith('/')) return false;
  const path = normalise(text);
  const own = cwd.toLowerCase();
  return path === own || path.startsWith(`${own}/`);
};

const find = (list: readonly RestrictedPath[], fits: (each: RestrictedPath) => boolean): string | undefined =>
  list.find(fits)?.entry;

/** Entries of a kind that a path with this first part can be of. */
function among(
  { all, byFirst }: RestrictedPaths,
  kind: RestrictedPath['kind'],
  [first]: readonly string[],
): readonly RestrictedPath[] {
  return first === undefined || isPattern(first) ? all : (byFirst.get(`${kind} ${first}`) ?? []);
}

/** The parts below a home: of `~/x`, `~user/x`; `~root` is a path of its own. */
function homePath(text: string): readonly string[] | undefined {
  if (!text.startsWith('~')) return undefined;
  return partsOf(normalise(text.slice(`${text}/`.indexOf('/') + 1)));
}

function absoluteEntry(path: readonly string[], look: Look): string | undefined {
  const { list } = look;
  const [first = ''] = path;
  const isHome = canBe(first, 'home') || canBe(first, 'users');
  const absolute = find(among(list, 'absolute', path), (each) => match(each, path, 'absolute', look));
  if (absolute !== undefined) return absolute;
  if (isHome) {
    const inHome = find(among(list, 'home', path.slice(2)), (each) =>
      match(each, path.slice(2), 'home', look),
    );
    if (inHome !== undefined) return inHome;
  }
  return namedEntry(path, list);
}

/** Behind `../..` a path may begin anywhere above. */
function outsideEntry(tail: readonly string[], look: Look): string | undefined {
  for (let at = 0; at < Math.min(tail.length, 4); at++) {
    const rest = tail.slice(at);
    const found = find(
      look.list.all,
      (each) => (at === 0 && match(each, rest, 'absolute', look)) || match(each, rest, 'home', look),
    );
    if (found !== undefined) return found;
  }
  return undefined;
}

/** After a change to a folder that is not known, a path may continue any entry. */
function anywhereEntry(path: readonly string[], list: RestrictedPaths): string | undefined {
  const [first = ''] = path;
  return find(
    list.all,
    ({ kind, parts }) => kind !== 'windows' && parts.some((part) => !isPattern(part) && canBe(first, part)),
  );
}

/** Beginnings of names that keys and tokens often have. */
const hints = /(^|[._*-])(keys?|priv\w*|secrets?|cred\w*|deploy|prod\w*|server|tls|ssl|tokens?|vault)[._*-]/;

function namedEntry(
  path: readonly string[],
  { all, names, patterns, mayFit }: RestrictedPaths,
): string | undefined {
  for (const part of path) {
    if (isExample(part)) continue;
    const exact = names.get(part);
    if (exact !== undefined) return exact;
    // `*` and `*.json` are everyday, and say nothing of a name.
    if (/^[*?]*(\.\w*)?$/.test(part) && part.startsWith('*')) {
      const found = find(patterns, ({ parts: [name = ''] }) => name === part);
      if (found !== undefined) return found;
      continue;
    }
    if (!isPattern(part) && !mayFit(part)) continue;
    const rest = isPattern(part) ? all : patterns;
    // `foo*` and `*.test.*` are everyday: such a pattern is compared with the letters of an entry, and not with its stars.
    const isOpen = part.endsWith('*') && !hints.test(part);
    const found = find(
      rest,
      ({ kind, parts: [name = ''] }) =>
        kind === 'name' && canBe(part, isOpen ? name.replaceAll('*', '') : name),
    );
    if (found !== undefined) return found;
  }
  return undefined;
}

function match(
  { kind, parts }: RestrictedPath,
  path: readonly string[],
  wanted: RestrictedPath['kind'],
  { deep }: Look,
): boolean {
  if (kind !== wanted) return false;
  const anyDepth = path.indexOf('**');
  if (anyDepth !== -1 && path.slice(0, anyDepth).every((part, at) => canBe(part, parts[at] ?? '')))
    return true;
  if (path.length < parts.length) return deep && path.every((part, at) => canBe(part, parts[at] ?? ''));
  return parts.every((part, at) => canBe(path[at] ?? '', part));
}

/** An entry without a drive is a folder's name, wherever it is. */
function windowsEntry(path: string, list: RestrictedPaths): string | undefined {
  if (!path.includes('\\')) return undefined;
  const segments = path.toLowerCase().split(/[\\/]/);
  return find(list.all, ({ kind, parts }) => {
    if (kind === 'name') return segments.includes(parts[0] ?? '');
    return kind === 'windows' && parts.every((segment, at) => segments[at] === segment);
  });
}
