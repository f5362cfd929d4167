/**
 * What in a live workspace the host would later execute by itself, and how it is held read-only inside. Pure: it is told what
 * there is and says which binds to make; it never looks at the machine.
 *
 * Nothing that a build or an agent has to edit is among it (package.json, Makefile, sources): what a person runs knowingly is
 * not what runs unasked. A path that is not there yet is held as well, by something empty and harmless in its place (a stub).
 */

import type { BoxMount } from '../protocol/box.ts';
import { SallyportError } from '../protocol/errors.ts';
import { executedNames } from './executed-names.ts';
import { type ProgramLook, programRules } from './program-paths.ts';
import { foldedName, isExecutedPlace } from './protected-names.ts';
import { rootGitNames, rootGitRules } from './root-git.ts';

export type FoundKind = 'file' | 'directory' | 'symlink' | 'other';

/** What the host's file system has in the workspace, by relative path and without following links. Absent: nothing is there. */
export interface WorkspaceLook {
  readonly found: Readonly<Record<string, FoundKind>>;
  /** In the workspace, and named by git's configuration as hooks or as more configuration. */
  readonly named: readonly string[];
  /** At the root, and executed by the host by a pattern of `executed-names.ts`. */
  readonly executed?: readonly string[];
  /** Of Sallyport's own program in it. */
  readonly programs?: ProgramLook;
}

/** What is put on the host where there is nothing to mount on. A folder is empty, so that git does not see it. */
export interface Stub {
  /** On the host, absolute. */
  readonly path: string;
  /** Of a file; absent: a folder. */
  readonly content?: string;
}

export interface ProtectionWish {
  /** More relative paths. */
  readonly protect: readonly string[];
  /** Of the default set, or `all`. */
  readonly unprotected: readonly string[];
}

export interface Protection {
  /** Parents before children, all inside the workspace. */
  readonly mounts: readonly BoxMount[];
  /** For each of those mounts that may be missing on the host when a sandbox starts; not for `.git` of a repository. */
  readonly stubs: readonly Stub[];
  /** What would have been held and is not, by request. */
  readonly unprotected: readonly string[];
  /** Of the mounts those that hold Sallyport's own program. */
  readonly programs: readonly string[];
}

export interface Rule {
  readonly path: string;
  /** What to put there if it is missing; `leave`: then there is nothing to protect. */
  readonly missing: 'folder' | 'leave' | { readonly content: string };
}

/** Without those with `*`: which of them are there says `WorkspaceLook.executed`. */
const projectRules: readonly Rule[] = executedNames
  // Sallyport's own program may be links, which have rules of their own.
  .filter(({ name }) => !name.includes('*') && !name.startsWith('node_modules/'))
  // What is missing and gets no placeholder is reported when it appears (`planted-watch.ts`).
  .map(
    ({ name, missing }): Rule => ({ path: name, missing: missing === 'placeholder' ? 'folder' : 'leave' }),
  );

/** In a repository. `.git` itself is writable: the index, objects and references change with every commit. */
const repositoryRules: readonly Rule[] = [
  { path: '.git/hooks', missing: 'folder' },
  { path: '.git/config', missing: { content: '' } },
  { path: '.git/config.worktree', missing: { content: '' } },
  { path: '.git/info', missing: 'folder' },
  // A planted one would lead git to another configuration and other hooks. One that says `.` leads nowhere.
  { path: '.git/commondir', missing: { content: '.\n' } },
  { path: '.git/modules', missing: 'leave' },
  // Of other worktrees of this repository: where their configuration is.
  { path: '.git/worktrees', missing: 'leave' },
];

const notRepositoryRule: Rule = { path: '.git', missing: 'folder' };

/** Relative paths that must be looked at before `protectWorkspace` can say anything. */
export function pathsToLookAt(more: readonly string[]): readonly string[] {
  const rules = [...projectRules, ...repositoryRules, notRepositoryRule].map(({ path }) => path);
  const all = [...rules, '.git/HEAD', ...rootGitNames, ...more.map(relative)];
  return [...new Set(all.flatMap((path) => [...ancestors(path), path]))];
}

export function protectWorkspace(
  workspace: { readonly source: string; readonly target: string },
  wish: ProtectionWish,
  look: WorkspaceLook,
): Protection {
  const isLeft = wish.unprotected.includes('all');
  const programs = programRules(look.programs ?? { paths: [] }, look.found, isLeft);
  const defaults = [
    ...rootGitRules(look.found, isLeft),
    ...programs,
    ...projectRules,
    ...(look.executed ?? []).map(leaveMissing),
    ...gitRules(look),
  ];
  const left = unprotectedOf(wish.unprotected, defaults);
  const isGitLeft = wish.unprotected.some((path) => path === 'all' || relative(path) === '.git');
  const rules = [
    ...defaults.filter(({ path }) => !left.includes(path)),
    ...(isGitLeft ? [] : look.named.map(leaveMissing)),
    ...wish.protect.map((path): Rule => ({ path: relative(path), missing: 'folder' })),
  ];
  const held = new Map<string, Rule>();
  for (const rule of rules) {
    // Also a link above it: nothing is there, so nothing has to be held.
    if (rule.missing === 'leave' && look.found[rule.path] === undefined) continue;
    const isThere = kindAt(rule.path, look) !== undefined;
    if (isThere || rule.missing !== 'leave') held.set(rule.path, rule);
  }
  // SECURITY: an ancestor that is no mount point could be renamed, and another put in its place.
  const parents = [...held.keys()].flatMap(ancestors).filter((path) => !held.has(path));
  const mountOf = (path: string, writable: boolean): BoxMount => ({
    source: `${workspace.source}/${path}`,
    target: `${workspace.target}/${path}`,
    writable,
  });
  const isInside = (path: string): boolean => ancestors(path).some((parent) => held.has(parent));
  const readOnly = [...held.values()].filter(({ path }) => !isInside(path));
  const writable = [...new Set(parents)].filter((path) => !isInside(path));
  for (const path of writable) requireFolder(path, look);
  return {
    mounts: [
      ...writable.map((path) => mountOf(path, true)),
      ...readOnly.map(({ path }) => mountOf(path, false)),
    ].sort((a, b) => depth(a.target) - depth(b.target) || (a.target < b.target ? -1 : 1)),
    stubs: [
      ...writable.filter((path) => path !== '.git').map((path) => stubOf(workspace.source, path, 'folder')),
      // What was there when this was decided may be gone at a later start.
      ...readOnly.map(({ path, missing }) =>
        stubOf(workspace.source, path, missing === 'leave' ? 'folder' : missing),
      ),
    ].sort((a, b) => depth(a.path) - depth(b.path)),
    unprotected: left,
    programs: programs.map(({ path }) => path).filter((path) => !left.includes(path)),
  };
}

function gitRules(look: WorkspaceLook): readonly Rule[] {
  const isRepository = look.found['.git'] === 'directory' && look.found['.git/HEAD'] !== undefined;
  return isRepository ? repositoryRules : [notRepositoryRule];
}

const leaveMissing = (path: string): Rule => ({ path, missing: 'leave' });

function stubOf(folder: string, path: string, missing: Exclude<Rule['missing'], 'leave'>): Stub {
  const place = `${folder}/${path}`;
  return missing === 'folder' ? { path: place } : { path: place, content: missing.content };
}

/** Undefined: nothing is there. What cannot be held is refused. */
function kindAt(path: string, look: WorkspaceLook): 'file' | 'directory' | undefined {
  for (const place of [...ancestors(path), path]) {
    const kind = look.found[place];
    if (kind === undefined) return undefined;
    if (kind === 'symlink' || kind === 'other') throw notHoldable(path, place, kind);
    if (kind === 'file' && place !== path) return undefined;
  }
  const kind = look.found[path];
  return kind === 'file' ? 'file' : 'directory';
}

function requireFolder(path: string, look: WorkspaceLook): void {
  if (kindAt(path, look) === 'file') throw notHoldable(path, path, 'file');
}

function notHoldable(path: string, place: string, kind: FoundKind): SallyportError {
  const what = {
    symlink: 'a symbolic link',
    other: 'neither a file nor a folder',
    file: 'a file',
    directory: '',
  };
  const why = `${place} is ${what[kind]}, which cannot be held`;
  return new SallyportError(
    'refused_by_policy',
    `workspace.path: ${path} is to be read-only inside, because the host executes what it says, and ${why}`,
    {
      details: { field: 'workspace.path', path, place },
      advice: `Put what it leads to in its place, work on a copy (\`mode: copy\`), or leave it writable with \`workspace.dangerously_unprotected: [${path}]\`.`,
    },
  );
}

/** `.git` stands for all of it. */
function unprotectedOf(wish: readonly string[], defaults: readonly Rule[]): readonly string[] {
  const known = defaults.map(({ path }) => path);
  if (wish.includes('all')) return known;
  const asked = wish.map(relative);
  const always = new Set([...projectRules, ...repositoryRules, notRepositoryRule].map(({ path }) => path));
  const isKnown = (path: string): boolean =>
    always.has(path) || rootGitNames.includes(path) || isExecutedPlace(path.split('/').map(foldedName));
  const stray = asked.find((path) => !isKnown(path));
  if (stray !== undefined) {
    throw new SallyportError(
      'refused_by_policy',
      `workspace.dangerously_unprotected: ${stray} is not protected by default`,
      {
        details: { field: 'workspace.dangerously_unprotected', path: stray },
        advice: `It may name ${[...always].join(', ')}, or all.`,
      },
    );
  }
  return known.filter((path) => asked.some((one) => path === one || path.startsWith(`${one}/`)));
}

const relative = (path: string): string =>
  path
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');

/** The nearest last; without the path itself. */
const ancestors = (path: string): readonly string[] =>
  path
    .split('/')
    .slice(0, -1)
    .map((_, index, parts) => parts.slice(0, index + 1).join('/'));

const depth = (path: string): number => path.split('/').length;
