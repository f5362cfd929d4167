/** Our reading of `.gitignore` beside git's own, on a tree of awkward names and patterns that nobody thought of. */

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ExcludeRules } from '../../src/policy/exclude-patterns.ts';
import { commandExists, full, requirement } from '../support/requires.ts';

const git = requirement('git', commandExists('git'));
const names = ['a', 'b', 'ab', 'a.b', '!a', '#a', 'a ', '[a]', '*', 'a\\b', 'é', 'abc'];
const folders = ['d', 'a', 'é'];

interface Entry {
  readonly path: string;
  readonly isFolder: boolean;
}

/** Each folder before what is in it; three deep, with a link to a folder. */
function makeTree(root: string, prefix = '', depth = 0): Entry[] {
  const files = names
    .filter((name) => depth === 2 || !folders.includes(name))
    .map((name) => ({ path: prefix + name, isFolder: false }));
  for (const { path } of files) writeFileSync(join(root, path), '');
  const below = (depth === 2 ? [] : folders).flatMap((name) => {
    mkdirSync(join(root, prefix + name));
    return [{ path: prefix + name, isFolder: true }, ...makeTree(root, `${prefix}${name}/`, depth + 1)];
  });
  return [...files, ...below];
}

const piece = fc.constantFrom(
  'a',
  'b',
  'd',
  'é',
  '*',
  '**',
  '/',
  '**/',
  '/**',
  '?',
  '[',
  ']',
  '[a-c]',
  '[!a]',
  '[^b]',
  '[[:alpha:]]',
  '[]a]',
  '[a-',
  '[\\]]',
  '\\',
  '\\*',
  '!',
  '#',
  ' ',
  '.',
  'ab',
  'abc',
  'd/',
  'a/',
  '-',
  '[[:x:]]',
  '[[:a]',
  '[b-a]',
  '\\ ',
);
const line = fc
  .tuple(
    fc.constantFrom('', '', '', '!', '/', '#', '\\!'),
    fc.array(piece, { maxLength: 5 }),
    fc.constantFrom('', '', '/', ' ', '\r'),
  )
  .map(([first, middle, last]) => first + middle.join('') + last);
const file = fc
  .tuple(fc.array(line, { maxLength: 5 }), fc.constantFrom('', '\n'))
  .map(([lines, end]) => lines.join('\n') + end);

function leftOut(tree: readonly Entry[], files: Readonly<Record<string, string>>): readonly string[] {
  const base = ExcludeRules.of({ patterns: [], from: ['.gitignore'] });
  const rulesOf = new Map<string, ExcludeRules>();
  const rulesAt = (folder: string): ExcludeRules => {
    const known = rulesOf.get(folder);
    if (known !== undefined) return known;
    const above = folder === '' ? base : rulesAt(folder.slice(0, Math.max(0, folder.lastIndexOf('/'))));
    const content = files[folder];
    const rules =
      content === undefined ? above : above.withFile(Buffer.from(folder), '.gitignore', Buffer.from(content));
    rulesOf.set(folder, rules);
    return rules;
  };
  const out = new Set<string>();
  for (const { path, isFolder } of tree) {
    const folder = path.slice(0, Math.max(0, path.lastIndexOf('/')));
    const isOut = out.has(folder) || rulesAt(folder).verdict(Buffer.from(path), isFolder) === 'out';
    if (isOut) out.add(path);
  }
  return [...out].sort();
}

function leftOutByGit(root: string, tree: readonly Entry[]): readonly string[] {
  try {
    const out = execFileSync('git', ['check-ignore', '--no-index', '-z', '--stdin'], {
      cwd: root,
      input: tree.map(({ path }) => `${path}\0`).join(''),
      env: { PATH: process.env['PATH'], HOME: root, GIT_CONFIG_NOSYSTEM: '1', LC_ALL: 'C' },
      stdio: ['pipe', 'pipe', 'pipe'],
      maxBuffer: 2 ** 26,
    });
    return out.toString('utf8').split('\0').filter(Boolean).sort();
  } catch (error) {
    // 1 means that nothing is left out.
    if ((error as { status?: number }).status === 1) return [];
    throw error;
  }
}

describe.runIf(git)('.gitignore', () => {
  test('[A5] leaves out what git leaves out, whatever the patterns', () => {
    const root = mkdtempSync(join(tmpdir(), 'sallyport-gitignore-'));
    onTestFinished(() => rmSync(root, { recursive: true }));
    execFileSync('git', ['init', '-q', '.'], { cwd: root });
    const tree = makeTree(root);
    symlinkSync('d', join(root, 'abclink'));
    const all = [...tree, { path: 'abclink', isFolder: false }];
    fc.assert(
      fc.property(file, file, (top, inner) => {
        writeFileSync(join(root, '.gitignore'), top);
        writeFileSync(join(root, 'd/.gitignore'), inner);
        expect(leftOut(all, { '': top, d: inner })).toEqual(leftOutByGit(root, all));
      }),
      { numRuns: full ? 3000 : 300 },
    );
  }, 300_000);
});
