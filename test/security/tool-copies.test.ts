/** uv and npm have copies of what the host executes; with `mode: shared` they have the host's own, as the control of each test. */

import {
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { mostCopied, mostCopiedPrograms } from '../../src/sandboxes/copy-meter.ts';
import { imageFlags } from '../support/engine-under-test.ts';
import { ownHome } from '../support/own-home.ts';
import { isRoot } from '../support/requires.ts';
import { openSandboxes } from '../support/sandboxes.ts';
import { homeOwner, homeTree, inHomeOf, notesOf, toolHome } from '../support/tool-home.ts';

describe('[A4] uv and npm', () => {
  const files = {
    '.local/share/uv/tools/ruff/bin/ruff': 'host program',
    '.local/share/uv/credentials/credentials.toml': 'password',
    '.cache/uv/archive-v0/pkg/init.py': 'host code',
    '.npm/_npx/one/cli.js': 'host package',
    '.npm/_cacache/index-v5/aa': 'host index',
    '.npm/_logs/': '',
  };
  const plant = [
    '.local/share/uv/tools/ruff/bin/ruff',
    '.local/share/uv/tools/new',
    '.cache/uv/archive-v0/pkg/init.py',
    '.npm/_npx/one/cli.js',
    '.npm/_npx/new',
    '.npm/_cacache/index-v5/aa',
    '.npm/_prebuilds/new.tgz',
  ].map((file) => `mkdir -p ${dirname(file)} && cat ${file} 2>/dev/null; echo planted > ${file}`);

  test('have copies of what the host executes: what is planted in them never appears on the host', async () => {
    const path = toolHome(files);
    const before = homeTree(path);
    const world = await openSandboxes({ home: path });
    const box = await world.make({ spec: { builtin_tools: ['uv', 'npm'] } });
    expect(await inHomeOf(box, `${plant.join('\n')}\necho log > .npm/_logs/one; ls .local/share/uv`)).toBe(
      'host programhost codehost packagehost indextools\n',
    );
    expect(await notesOf(world, 'tool_own_copy')).toHaveLength(2);
    await expect(box.verify()).resolves.toMatchObject({ ok: true });
    // As long as the sandbox is there its own are, too.
    await box.stop(0);
    await box.start();
    expect(await inHomeOf(box, 'cat .npm/_npx/new .local/share/uv/tools/new')).toBe('planted\nplanted\n');
    await box.remove({ force: true });
    expect(homeTree(path)).toEqual({ ...before, '.npm/_logs/one': 'log\n' });

    const open = await openSandboxes({ home: path });
    const free = await open.make({
      spec: {
        builtin_tools: [
          { name: 'uv', mode: 'shared' },
          { name: 'npm', mode: 'shared' },
        ],
      },
    });
    await inHomeOf(free, plant.join('\n'));
    for (const file of ['.local/share/uv/tools/ruff/bin/ruff', '.npm/_npx/new', '.npm/_cacache/index-v5/aa'])
      expect(readFileSync(join(path, file), 'utf8')).toBe('planted\n');
    expect((await notesOf(open, 'tool_shared')).join('\n')).toMatch(/WARNING: uv .*\n.*WARNING: npm /);
    expect((await free.verify()).checks).toContainEqual(
      expect.objectContaining({ name: 'tools in mode shared', found: 'uv npm' }),
    );
  });

  test('cannot plant a global program or settings of npm where its prefix is ~/.npm', async () => {
    const path = toolHome({ '.npm/bin/tool': 'host', '.npm/lib/node_modules/tool/cli.js': 'host' });
    const before = homeTree(path);
    const names = ['bin/tool', 'bin/git', 'lib/node_modules/tool/cli.js', 'lib/new', 'etc/npmrc'];
    const acts = names.map(
      (name) =>
        `mkdir -p $(dirname .npm/${name}) 2>/dev/null; (echo x > .npm/${name}) 2>/dev/null || echo held`,
    );
    const world = await openSandboxes({ home: path });
    const box = await world.make({ spec: { builtin_tools: ['npm'] } });
    expect(await inHomeOf(box, `${acts.join('\n')}\ncat .npm/bin/tool; echo x > .npm/free`)).toBe(
      `${'held\n'.repeat(names.length)}host`,
    );
    await box.remove({ force: true });
    expect(homeTree(path)).toEqual({ ...before, '.npm/free': 'x\n' });
    const open = await openSandboxes({ home: path });
    const free = await open.make({ spec: { builtin_tools: [{ name: 'npm', mode: 'shared' }] } });
    await inHomeOf(free, acts.join('\n'));
    for (const name of names) expect(readFileSync(join(path, '.npm', name), 'utf8')).toBe('x\n');
  });

  test('[A12] have them again after the state folder was lost, and the host keeps its own', async () => {
    const path = toolHome(files);
    const before = homeTree(path);
    const first = await openSandboxes({ home: path });
    await first.make({ spec: { name: 'lost', builtin_tools: ['uv'] } });
    await first.abandon();
    rmSync(join(first.stateDir, 'sandboxes'), { recursive: true });
    const second = await openSandboxes({ home: path, stateDir: first.stateDir });
    const found = second.sandboxes.get('lost');
    await found.start();
    const script = 'cat .local/share/uv/tools/ruff/bin/ruff; echo x > .local/share/uv/tools/ruff/bin/ruff';
    expect(await inHomeOf(found, script)).toBe('host program');
    expect(homeTree(path)).toEqual(before);
  });

  test.each([
    [
      'more files than are copied',
      (folder: string) => many(folder, mostCopied.entries + 1),
      /more than 10000/,
    ],
    [
      'more bytes than are copied',
      (folder: string) => truncateSync(fileIn(folder), mostCopied.bytes + 1),
      /larger than 256/,
    ],
  ])('begin empty with %s, at once and with an event', async (_what, fill, why) => {
    const path = toolHome({ '.cache/uv/': '', '.local/share/uv/tools/x': 'small' });
    fill(join(path, '.cache/uv'));
    const world = await openSandboxes({ home: path });
    const box = await world.make({ spec: { builtin_tools: ['uv'] } });
    expect(await inHomeOf(box, 'ls -A .cache/uv; cat .local/share/uv/tools/x; echo x > .cache/uv/x')).toBe(
      'small',
    );
    const [message, ...more] = await notesOf(world, 'tool_starts_empty');
    expect(message).toMatch(/^WARNING: /);
    expect(message).toMatch(why);
    expect(more).toEqual([]);
    const folder = join(world.stateDir, 'sandboxes', box.id, 'shadow/uv-cache');
    expect(readdirSync(folder)).toEqual(['x']);
  });
});

describe('[A4] Pythons and tools that uv installed', () => {
  test.each([
    ['are inside, where a cache of that size is not', mostCopied.bytes + 1, `${mostCopied.bytes + 1}\n`, []],
    [
      'are missing above their own bound, with a warning',
      mostCopiedPrograms.bytes + 1,
      'none\n',
      [expect.stringMatching(/^WARNING: .*uv.* larger than 1\.0 GiB/)],
    ],
  ])('%s', async (_what, sizeBytes, seen, warnings) => {
    const path = toolHome({ '.local/share/uv/': '' });
    truncateSync(fileIn(join(path, '.local/share/uv')), sizeBytes);
    const world = await openSandboxes({ home: path });
    const box = await world.make({ spec: { builtin_tools: ['uv'] } });
    expect(await inHomeOf(box, 'stat -c %s .local/share/uv/large 2>/dev/null || echo none')).toBe(seen);
    expect(await notesOf(world, 'tool_starts_empty')).toEqual(warnings);
  });

  test('are said to be missing by the command that makes the sandbox', async () => {
    const path = toolHome({ '.local/share/uv/': '' });
    truncateSync(fileIn(join(path, '.local/share/uv')), mostCopiedPrograms.bytes + 1);
    const name = `uv-empty-${process.pid}`;
    const create = ['create', '--tool', 'uv', '--name', name, ...imageFlags()];
    // A daemon of its own: the home is that of the daemon.
    const { sally } = await ownHome();
    const env = { HOME: path };
    onTestFinished(async () => void (await sally(['rm', '--force', name], { env })));
    const { code, stderr } = await sally(create, { env });
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(/^sally: WARNING: .*uv was not copied/m),
    });
  });
});

const fileIn = (folder: string): string => {
  writeFileSync(join(folder, 'large'), '');
  if (isRoot) chownSync(join(folder, 'large'), homeOwner, homeOwner);
  return join(folder, 'large');
};
const many = (folder: string, count: number): void => {
  for (let index = 0; index < count; index += 1) mkdirSync(join(folder, `${index}`));
};
