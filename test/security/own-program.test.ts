/**
 * Sallyport as a project-local install lies in the folder that a sandbox works on. A sandbox that could write to it would be the
 * program that holds it, from its next start on.
 */

import { execFileSync } from 'node:child_process';
import { chownSync, cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { isRoot } from '../support/requires.ts';
import { openSandboxes, runInSandbox, type TestSandboxes } from '../support/sandboxes.ts';

const owner = isRoot ? 1234 : (process.getuid?.() ?? -1);
const open = { dangerously_unprotected: ['all'] };

function owned(folder: string): void {
  if (isRoot) execFileSync('chown', ['-R', '-h', `${owner}:${owner}`, folder]);
}

function workspace(): string {
  const folder = temporaryFolder();
  if (isRoot) chownSync(folder, owner, owner);
  return folder;
}

/** As npm installs it: the packages that it loads beside it, and links to its program. */
function installed(): { readonly folder: string; readonly root: string } {
  const folder = workspace();
  const root = join(folder, 'node_modules/sallyport');
  mkdirSync(join(root, 'dist/cli'), { recursive: true });
  cpSync(join(packageInfo().root, 'package.json'), join(root, 'package.json'));
  writeFileSync(join(root, 'dist/cli/sally.cjs'), 'console.log("own")');
  for (const name of ['modern-tar', 'other']) {
    mkdirSync(join(folder, 'node_modules', name), { recursive: true });
    writeFileSync(join(folder, 'node_modules', name, 'package.json'), '{}');
  }
  mkdirSync(join(folder, 'node_modules/.bin'));
  symlinkSync('../sallyport/dist/cli/sally.cjs', join(folder, 'node_modules/.bin/sally'));
  owned(folder);
  return { folder, root };
}

const sh = async (box: Sandbox, script: string): Promise<string> =>
  (await runInSandbox(box, ['sh', '-c', script])).output.data;

const acts: Readonly<Record<string, string>> = {
  program: 'echo x > node_modules/sallyport/dist/cli/sally.cjs',
  link: 'ln -sf /tmp/x node_modules/.bin/sally',
  otherName: 'echo x > node_modules/.bin/sallyport',
  dependency: 'echo x > node_modules/modern-tar/index.js',
  nearerDependency: 'mkdir -p node_modules/sallyport/node_modules/zod',
  renamed: 'mv node_modules node_modules.old',
};
const tried = Object.entries(acts).map(
  ([name, act]) => `if (${act}) >/dev/null 2>&1; then echo ${name} done; else echo ${name} refused; fi`,
);

const notes = async ({ sandboxes }: TestSandboxes, code: string): Promise<string[]> => {
  const messages: string[] = [];
  for await (const event of sandboxes.events.follow(0, new AbortController().signal)) {
    if (event.type === 'sandbox.note' && event.code === code) messages.push(event.message);
    if (event.sequence === sandboxes.events.sequence) break;
  }
  return messages;
};

describe('[N5] the program that runs a sandbox', () => {
  test('is read-only in a live workspace that contains it, with the packages that it loads; without protection it is not', async () => {
    const { folder, root } = installed();
    const world = await openSandboxes({ programs: [root, process.execPath] });
    const box = await world.make({ spec: { workspace: { path: folder } } });
    expect((await sh(box, tried.join('\n'))).trim().split('\n')).toEqual(
      Object.keys(acts).map((name) => `${name} refused`),
    );
    expect(await sh(box, 'echo x > node_modules/other/index.js && mkdir node_modules/new && echo fine')).toBe(
      'fine\n',
    );
    expect(readFileSync(join(root, 'dist/cli/sally.cjs'), 'utf8')).toBe('console.log("own")');
    expect((await notes(world, 'program_held'))[0]).toContain('node_modules/.bin');
    expect((await box.verify()).ok).toBe(true);
    const free = await world.make({ spec: { workspace: { path: installed().folder, ...open } } });
    expect((await sh(free, tried.join('\n'))).trim().split('\n')).toEqual(
      Object.keys(acts).map((name) => `${name} done`),
    );
  });

  test.each([
    [
      'in the store of pnpm',
      'node_modules/.pnpm/sallyport@1/node_modules/sallyport',
      { 'node_modules/.pnpm/sallyport@1/node_modules/modern-tar': '../../tar@1/node_modules/modern-tar' },
      'node_modules/.pnpm/tar@1/node_modules/modern-tar',
      {
        link: 'ln -sfn /tmp node_modules/.pnpm/sallyport@1/node_modules/modern-tar',
        target: 'echo x > node_modules/.pnpm/tar@1/node_modules/modern-tar/index.js',
      },
    ],
    [
      'in a nested folder',
      'packages/app/node_modules/sallyport',
      {},
      'node_modules/modern-tar',
      {
        nearest: 'mkdir packages/app/node_modules/modern-tar',
        between: 'mkdir -p packages/node_modules/modern-tar',
        target: 'echo x > node_modules/modern-tar/index.js',
      },
    ],
  ])(
    'loads nothing else, where it runs %s; without protection it does',
    async (_where, runs, links, dependency, tries) => {
      const make = (): string => {
        const folder = workspace();
        for (const path of [runs, dependency, 'src']) mkdirSync(join(folder, path), { recursive: true });
        writeFileSync(join(folder, runs, 'package.json'), '{"dependencies":{"modern-tar":"1"}}');
        writeFileSync(join(folder, dependency, 'package.json'), '{}');
        for (const [path, target] of Object.entries(links)) symlinkSync(target, join(folder, path));
        owned(folder);
        return folder;
      };
      const script = Object.entries({ ...tries, other: 'echo x > src/x' })
        .map(
          ([name, act]) =>
            `if (${act}) >/dev/null 2>&1; then echo ${name} done; else echo ${name} refused; fi`,
        )
        .join('\n');
      const trial = async (more: Record<string, unknown>): Promise<string> => {
        const folder = make();
        const world = await openSandboxes({ programs: [join(folder, runs)] });
        return await sh(await world.make({ spec: { workspace: { path: folder, ...more } } }), script);
      };
      const names = Object.keys(tries);
      expect(await trial({})).toBe([...names.map((name) => `${name} refused`), 'other done', ''].join('\n'));
      expect(await trial(open)).toBe(
        [...names, 'other', ''].map((name) => (name === '' ? '' : `${name} done`)).join('\n'),
      );
    },
  );

  test('is held where the client says that it runs from, and so is Node', async () => {
    const folder = workspace();
    for (const path of ['tools/sally', 'tools/node/bin']) mkdirSync(join(folder, path), { recursive: true });
    writeFileSync(join(folder, 'tools/node/bin/node'), '');
    owned(folder);
    const { make } = await openSandboxes();
    const act =
      'for f in tools/sally/x tools/node/bin/node tools/x; do (echo x > $f) 2>/dev/null && echo $f; done';
    const programs = [join(folder, 'tools/sally'), join(folder, 'tools/node/bin/node')];
    const box = await make({ spec: { workspace: { path: folder } }, programs });
    expect(await sh(box, act)).toBe('tools/x\n');
    await box.remove({ force: true });
    const other = await make({ spec: { workspace: { path: folder } } });
    expect(await sh(other, act)).toBe('tools/sally/x\ntools/node/bin/node\ntools/x\n');
  });

  test('refuses a workspace that it cannot be held in, and a writable mount of it, before anything is made', async () => {
    const { folder, root } = installed();
    const { make, sandboxes } = await openSandboxes({ programs: [root] });
    const refused = (field: string) => ({
      code: 'refused_by_policy',
      details: expect.objectContaining({ field, rule: 'program' }),
    });
    await expect(make({ spec: { workspace: { path: root } } })).rejects.toMatchObject(
      refused('workspace.path'),
    );
    await expect(make({ spec: { workspace: { path: join(root, 'dist') } } })).rejects.toMatchObject(
      refused('workspace.path'),
    );
    const mount = { source: join(folder, 'node_modules'), target: '/modules' };
    await expect(make({ spec: { mounts: [{ ...mount, writable: true }] } })).rejects.toMatchObject(
      refused('mounts.0.source'),
    );
    expect(sandboxes.list()).toEqual([]);
    await make({ spec: { name: 'read', mounts: [mount] } });
    await make({ spec: { name: 'other', mounts: [{ ...mount, source: workspace(), writable: true }] } });
    await make({ spec: { name: 'free', workspace: { path: root, ...open } } });
  });

  test('is reported where a sandbox plants it for npx to find', async () => {
    const { make } = await openSandboxes();
    const folder = workspace();
    const box = await make({ spec: { workspace: { path: folder } } });
    await sh(
      box,
      'mkdir -p node_modules/.bin node_modules/x && echo x > node_modules/.bin/sally && echo x > node_modules/x/.npmrc',
    );
    expect((await box.scan())?.planted).toEqual([
      expect.objectContaining({ path: 'node_modules/.bin/sally', kind: 'name', how: 'new' }),
    ]);
    expect(existsSync(join(folder, 'node_modules/.bin/sally'))).toBe(true);
  });
});
