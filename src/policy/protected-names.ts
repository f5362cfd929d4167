/**
 * Whether a path is one of those that a host executes unasked (`executed-names.ts`). What was changed below one of them inside a
 * sandbox is not brought back unless its path is named. Pure.
 */

import { executedNames } from './executed-names.ts';
import { programNames } from './program-paths.ts';

/** SECURITY: some file systems take names for the same that differ in case, in characters that nobody sees, or at their end. */
export const foldedName = (name: string): string =>
  name
    .normalize('NFKC')
    .replace(/\p{C}/gu, '')
    .toLowerCase()
    // NTFS: the stream of a file, and dots and spaces at the end.
    .replace(/:.*$/u, '')
    .replace(/[. ]+$/u, '');

/** `*` stands for any characters of a name; to be asked with a folded one. */
export const patternOf = (name: string): RegExp =>
  new RegExp(`^${name.toLowerCase().replace(/[.+]/g, '\\$&').replaceAll('*', '.*')}$`, 'u');

/** As Windows shortens it: `.vscode` is also `VSCODE~1`, `.mcp.json` is also `MCP~1.JSO`. */
function shortPatternOf(name: string): string {
  const bare = name.toLowerCase().replace(/^\.+/, '');
  const dot = bare.lastIndexOf('.');
  const [stem, end] = dot === -1 ? [bare, ''] : [bare.slice(0, dot), bare.slice(dot + 1)];
  const kept = stem.replace(/[. ]/g, '').slice(0, 6);
  return `${kept}~[1-9]${end === '' ? '' : `\\.${end.slice(0, 3)}`}`;
}

const plain = ['.git', ...executedNames.map(({ name }) => name)];
const single = plain.filter((name) => !name.includes('/'));
const exact: ReadonlySet<string> = new Set(
  single.filter((name) => !name.includes('*')).map((name) => name.toLowerCase()),
);
const patterns = single.filter((name) => name.includes('*')).map(patternOf);
const short = new RegExp(
  `^(?:${single
    .filter((name) => !name.includes('*'))
    .map(shortPatternOf)
    .join('|')})$`,
);
const sequences = plain
  .filter((name) => name.includes('/'))
  .map((name) => name.split('/').map((part) => patternOf(part)));

/** Folders in which names with `*` of the list are. */
export const patternFolders: readonly string[] = [
  ...new Set(
    executedNames
      .filter(({ name }) => name.includes('/') && name.includes('*'))
      .map(({ name }) => name.slice(0, name.lastIndexOf('/'))),
  ),
];

const isFoldedName = (name: string): boolean =>
  exact.has(name) ||
  patterns.some((pattern) => pattern.test(name)) ||
  (name.includes('~') && short.test(name));

/** The last parts of a path, folded: whether they name what a host executes. Folders above it are not looked at. */
export const isExecutedPlace = (parts: readonly string[]): boolean =>
  isFoldedName(parts.at(-1) ?? '') ||
  sequences.some(
    (sequence) =>
      sequence.length <= parts.length &&
      sequence.every((pattern, index) => pattern.test(parts[parts.length - sequence.length + index] ?? '')),
  );

/** Of these names those that lie among installed packages. */
export const isProgramPlace = (parts: readonly string[]): boolean =>
  parts.includes('node_modules') && programNames.some((name) => `/${parts.join('/')}`.endsWith(`/${name}`));

const partsOf = (path: Buffer): readonly string[] => path.toString('utf8').split('/').map(foldedName);

/** At any depth: the folder may be opened there as well. */
export function isProtectedPath(path: Buffer): boolean {
  const parts = partsOf(path);
  return parts.some((_, index) => isExecutedPlace(parts.slice(0, index + 1)));
}

export const isGitName = (folded: string): boolean => folded === '.git' || /^git~[1-9]$/.test(folded);

/** Of a repository itself: no part of a patch. */
export const isGitPath = (path: Buffer): boolean => partsOf(path).some(isGitName);

/** Of a git directory: with the first, and either the last or the two others, git takes a folder for one. */
export const gitShape = { head: 'head', objects: 'objects', refs: 'refs', common: 'commondir' } as const;

/** Whether git takes a folder with these names in it, folded, for a git directory. */
export const isGitDirectory = (has: (folded: string) => boolean): boolean =>
  has(gitShape.head) && (has(gitShape.common) || (has(gitShape.objects) && has(gitShape.refs)));
