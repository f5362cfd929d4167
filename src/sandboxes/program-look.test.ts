/** Layouts of package managers: which folders of a workspace are held so that the program and what it loads stay what they are. */

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { protectWorkspace } from '../policy/protected-paths.ts';
import { lookIntoWorkspace } from './workspace-look.ts';

/** A folder with packages, each with its dependencies, and links, each with what it leads to; both by path. */
function workspace(
  packages: Readonly<Record<string, readonly string[]>>,
  links: Readonly<Record<string, string>> = {},
): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'sallyport-program-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [path, names] of Object.entries(packages)) {
    mkdirSync(join(folder, path), { recursive: true });
    const dependencies = Object.fromEntries(names.map((name) => [name, '1']));
    writeFileSync(join(folder, path, 'package.json'), JSON.stringify({ dependencies }));
  }
  for (const [path, target] of Object.entries(links)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    symlinkSync(relative(dirname(join(folder, path)), join(folder, target)), join(folder, path));
  }
  return folder;
}

/** Read-only paths of packages. `runs`: the package that the daemon runs from, by path. */
async function held(folder: string, runs?: string): Promise<readonly string[]> {
  const programs = runs === undefined ? [] : [join(folder, runs)];
  const look = await lookIntoWorkspace(folder, {}, { isPlaceholder: () => false, programs });
  const wish = { protect: [], unprotected: [] };
  const { mounts } = protectWorkspace({ source: folder, target: '/workspace' }, wish, look);
  return mounts
    .filter(({ source, writable }) => !writable && /node_modules|packages|tools/.test(source))
    .map(({ source }) => relative(folder, source))
    .sort();
}

const pnpm = {
  'node_modules/.pnpm/sallyport@1/node_modules/sallyport': ['zod'],
  'node_modules/.pnpm/zod@4/node_modules/zod': [],
  'node_modules/.pnpm/other@1/node_modules/other': [],
};
const pnpmLinks = {
  'node_modules/.pnpm/sallyport@1/node_modules/zod': 'node_modules/.pnpm/zod@4/node_modules/zod',
  'node_modules/other': 'node_modules/.pnpm/other@1/node_modules/other',
};
const store = 'node_modules/.pnpm/sallyport@1/node_modules/sallyport';

describe('[N5] the program in a workspace', () => {
  it('is held as packages where npm installed it, with what it loads and nothing else', async () => {
    const folder = workspace({
      'node_modules/sallyport': ['zod'],
      'node_modules/zod': [],
      'node_modules/other': [],
    });
    expect(await held(folder)).toEqual(['node_modules/sallyport', 'node_modules/zod']);
    expect(await held(workspace({ 'node_modules/other': [] }))).toEqual([]);
  });

  it('is held with all of node_modules where pnpm linked it there, because a link cannot be held', async () => {
    const folder = workspace(pnpm, { ...pnpmLinks, 'node_modules/sallyport': store });
    expect(await held(folder)).toEqual(['node_modules']);
    // Without the link, and without a daemon that runs from the store, nothing of it is executed here.
    expect(await held(workspace(pnpm, pnpmLinks))).toEqual([]);
  });

  it('is held with the folder of its links where it runs from the store of pnpm', async () => {
    expect(await held(workspace(pnpm, pnpmLinks), store)).toEqual([
      'node_modules/.pnpm/sallyport@1/node_modules',
      'node_modules/.pnpm/zod@4/node_modules/zod',
    ]);
  });

  it('is held with all of node_modules where a workspace of npm links its own package there', async () => {
    const packages = { 'packages/sallyport': ['zod'], 'packages/app': [], 'node_modules/zod': [] };
    const link = { 'node_modules/sallyport': 'packages/sallyport' };
    expect(await held(workspace(packages, link))).toEqual([
      'node_modules',
      'packages/node_modules',
      'packages/sallyport',
    ]);
    expect(await held(workspace(packages, { 'node_modules/app': 'packages/app' }))).toEqual([]);
  });

  it('is held in a nested node_modules, in which nothing may come before what it loads', async () => {
    const nested = {
      'packages/app/node_modules/sallyport': ['zod', 'ws'],
      'packages/app/node_modules/ws': [],
      'node_modules/zod': [],
      'node_modules/other': [],
    };
    const runs = 'packages/app/node_modules/sallyport';
    expect(await held(workspace(nested), runs)).toEqual([
      'node_modules/zod',
      'packages/app/node_modules',
      'packages/node_modules',
    ]);
    // What it loads is nearest already.
    const near = { ...nested, 'packages/app/node_modules/zod': [] };
    expect(await held(workspace(near), runs)).toEqual([
      'packages/app/node_modules/sallyport',
      'packages/app/node_modules/ws',
      'packages/app/node_modules/zod',
    ]);
    expect(await held(workspace(nested))).toEqual([]);
  });

  it('refuses a workspace in which a link leads to it through a folder that cannot be held', async () => {
    const packages = { 'tools/sallyport': ['zod'], 'tools/zod': [] };
    const linked = workspace(packages, { node_modules: 'tools' });
    await expect(held(linked)).rejects.toMatchObject({
      code: 'refused_by_policy',
      details: expect.objectContaining({ path: expect.stringContaining('node_modules') }),
    });
    expect(await held(workspace(packages, { modules: 'tools' }), 'tools/sallyport')).toEqual([
      'tools/sallyport',
    ]);
  });
});
