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
import type { NamedByGit } from './git-config.ts';
import { ancestors, type Found, type FoundKind, holdPaths, type Rule, type Stub } from './held-paths.ts';
import { type ProgramLook, programRules } from './program-paths.ts';
import { foldedName, isExecutedPlace } from './protected-names.ts';
import { rootGitNames, rootGitRules } from './root-git.ts';

/** What the host's file system has in the workspace. */
export interface WorkspaceLook {
  readonly found: Found;
  /** In the workspace, and executed or obeyed because git's configuration names it. */
  readonly named: readonly NamedByGit[];
  /** At the root, and executed by the host by a pattern of `executed-names.ts`. */
  readonly executed?: readonly string[];
  /** Of Sallyport's own program in it. */
  readonly programs?: ProgramLook;
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
export const pathsToLookAt = (more: readonly string[]): readonly string[] =>
  withAncestors([...projectRules.map(({ path }) => path), ...gitPlaces, ...more.map(relative)]);

/** What `gitRules` and `rootGitRules` ask for. */
export const gitPlaces: readonly string[] = [
  ...[...repositoryRules, notRepositoryRule].map(({ path }) => path),
  '.git/HEAD',
  ...rootGitNames,
];

export const withAncestors = (paths: readonly string[]): readonly string[] => [
  ...new Set(paths.flatMap((path) => [...ancestors(path), path])),
];

export function protectWorkspace(
  workspace: { readonly source: string; readonly target: string },
  wish: ProtectionWish,
  look: WorkspaceLook,
): Protection {
  const isLeft = wish.unprotected.includes('all');
  const programs = programRules(look.programs ?? { paths: [], nearer: [] }, look.found, isLeft);
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
    ...(isGitLeft ? [] : look.named.map(namedRule)),
    ...wish.protect.map((path): Rule => ({ path: relative(path), missing: 'folder' })),
  ];
  const { mounts, stubs } = holdPaths(workspace, rules, look.found, notHoldable);
  return {
    mounts,
    stubs,
    unprotected: left,
    programs: programs.map(({ path }) => path).filter((path) => !left.includes(path)),
  };
}

/** Of a repository what git obeys, and of a folder that is none its place. */
export function gitRules({ found }: { readonly found: Found }): readonly Rule[] {
  const isRepository = found['.git'] === 'directory' && found['.git/HEAD'] !== undefined;
  return isRepository ? repositoryRules : [notRepositoryRule];
}

function namedRule({ path, as }: NamedByGit): Rule {
  switch (as) {
    case 'hooks':
      return { path, missing: 'folder' };
    case 'configuration':
      return { path, missing: { content: '' } };
    case 'program':
    case 'repository':
      return { path, missing: 'leave' };
  }
}

const leaveMissing = (path: string): Rule => ({ path, missing: 'leave' });

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
