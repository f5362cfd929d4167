/**
 * How paths in a folder that is writable inside are held: which binds to make over it, and what must be on the host for them. Pure: it
 * is told what there is, and never looks at the machine.
 */

import type { BoxMount } from '../protocol/box.ts';

export type FoundKind = 'file' | 'directory' | 'symlink' | 'other';

/** By path relative to the folder, without following links. Absent: nothing is there. */
export type Found = Readonly<Record<string, FoundKind>>;

/** What is put on the host where there is nothing to mount on. A folder is empty, so that git does not see it. */
export interface Stub {
  /** On the host, absolute. */
  readonly path: string;
  /** Of a file; absent: a folder. */
  readonly content?: string;
}

export interface Rule {
  readonly path: string;
  /**
   * What to put there if it is missing; `leave`: then there is nothing to protect, though a folder takes its place if it is gone at a
   * later start; `forget`: nothing ever does.
   */
  readonly missing: 'folder' | 'leave' | 'forget' | { readonly content: string };
  /** `own`: not read-only, but a folder of the sandbox's own is mounted there. */
  readonly inside?: 'own';
}

/** Of the host, and where it is inside. */
export interface HeldFolder {
  readonly source: string;
  readonly target: string;
}

/** A place of the host that a folder of the sandbox's own is mounted on. */
export interface OwnPlace {
  /** Relative to the folder. */
  readonly path: string;
  /** On the host. */
  readonly source: string;
  readonly target: string;
}

export interface HeldPaths {
  /** Parents before children. */
  readonly mounts: readonly BoxMount[];
  /** Also for what is there: it may be gone at a later start. Not for `.git` of a repository, and not for what is forgotten. */
  readonly stubs: readonly Stub[];
  readonly own: readonly OwnPlace[];
}

/** `place`: the path itself or a folder on the way to it. */
export type Unholdable = (path: string, place: string, kind: FoundKind) => Error;

/** Throws what `unholdable` makes where something cannot be mounted on, or could be replaced. */
export function holdPaths(
  folder: HeldFolder,
  rules: readonly Rule[],
  found: Found,
  unholdable: Unholdable,
): HeldPaths {
  const kindAt = (path: string) => holdableKind(path, found, unholdable);
  const held = new Map<string, Rule>();
  for (const rule of rules) {
    // Also a link above it: nothing is there, so nothing has to be held.
    if (isLeft(rule) && found[rule.path] === undefined) continue;
    const isThere = kindAt(rule.path) !== undefined;
    if (isThere || !isLeft(rule)) held.set(rule.path, rule);
  }
  // SECURITY: an ancestor that is no mount point could be renamed, and another put in its place.
  const parents = [...held.keys()].flatMap(ancestors).filter((path) => !held.has(path));
  const isInside = (path: string): boolean => ancestors(path).some((parent) => held.has(parent));
  const outer = [...held.values()].filter(({ path }) => !isInside(path));
  const readOnly = outer.filter(({ inside }) => inside === undefined);
  const own = outer.filter(({ inside }) => inside === 'own').map(({ path }) => path);
  const writable = [...new Set(parents)].filter((path) => !isInside(path));
  for (const path of [...writable, ...own]) if (kindAt(path) === 'file') throw unholdable(path, path, 'file');
  const placeOf = (path: string) => ({
    source: `${folder.source}/${path}`,
    target: `${folder.target}/${path}`,
  });
  return {
    mounts: [
      ...writable.map((path) => ({ ...placeOf(path), writable: true })),
      ...readOnly.map(({ path }) => ({ ...placeOf(path), writable: false })),
    ].sort((a, b) => depth(a.target) - depth(b.target) || (a.target < b.target ? -1 : 1)),
    stubs: [
      ...[...writable.filter((path) => path !== '.git'), ...own].map((path) =>
        stubOf(folder.source, path, 'folder'),
      ),
      ...readOnly.flatMap(({ path, missing }) =>
        missing === 'forget' ? [] : [stubOf(folder.source, path, missing === 'leave' ? 'folder' : missing)],
      ),
    ].sort((a, b) => depth(a.path) - depth(b.path)),
    own: own.map((path) => ({ path, ...placeOf(path) })),
  };
}

const isLeft = ({ missing }: Rule): boolean => missing === 'leave' || missing === 'forget';

function stubOf(folder: string, path: string, missing: 'folder' | { readonly content: string }): Stub {
  const place = `${folder}/${path}`;
  return missing === 'folder' ? { path: place } : { path: place, content: missing.content };
}

/** Undefined: nothing is there. */
function holdableKind(path: string, found: Found, unholdable: Unholdable): 'file' | 'directory' | undefined {
  for (const place of [...ancestors(path), path]) {
    const kind = found[place];
    if (kind === undefined) return undefined;
    if (kind === 'symlink' || kind === 'other') throw unholdable(path, place, kind);
    if (kind === 'file' && place !== path) return undefined;
  }
  return found[path] === 'file' ? 'file' : 'directory';
}

/** The nearest last; without the path itself. */
export const ancestors = (path: string): readonly string[] =>
  path
    .split('/')
    .slice(0, -1)
    .map((_, index, parts) => parts.slice(0, index + 1).join('/'));

const depth = (path: string): number => path.split('/').length;
