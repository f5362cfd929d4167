/**
 * Files that a program inside makes at no cost and whose copy would cost the host its disk: the daemon refuses to copy them, or
 * copies them with their holes, and stops copying when nobody wants the sandbox any more.
 */

import { lstatSync, symlinkSync, truncateSync } from 'node:fs';
import { mkdir, readdir, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createBody } from '../../src/protocol/requests.ts';
import { Images } from '../../src/sdk/images.ts';
import { newFolder, sally } from '../support/cli.ts';
import { testDaemon } from '../support/daemon.ts';
import { imageFlags, testImage } from '../support/engine-under-test.ts';
import { hasOpen } from '../support/open-files.ts';
import { openSandboxes } from '../support/sandboxes.ts';
import { bareTools, inHomeOf, toolHome } from '../support/tool-home.ts';
import { until } from '../support/until.ts';

const TiB = 2 ** 40;
const MiB = 2 ** 20;

/** A home whose `.claude` gets copied, because a link in it leads out. */
function homeWith(sizeBytes: number): { readonly home: string; readonly file: string } {
  const home = toolHome({ ...bareTools, '.claude/x': '', '.claude/plain': 'mine' });
  symlinkSync('/etc', join(home, '.claude/y'));
  const file = join(home, '.claude/x');
  truncateSync(file, sizeBytes);
  return { home, file };
}

describe("[N5] a tool's folder that is copied", () => {
  it('is refused with a file of 1 TiB without data, before anything is made', async () => {
    const { home, file } = homeWith(TiB);
    const { make, sandboxes, stateDir } = await openSandboxes({ home });
    await expect(make({ spec: { builtin_tools: ['claude'] } })).rejects.toMatchObject({
      code: 'copy_too_large',
      message: expect.stringContaining(file),
    });
    expect(sandboxes.list()).toEqual([]);
    expect(await readdir(join(stateDir, 'sandboxes')).catch(() => [])).toEqual([]);
  });

  it('keeps the holes of a smaller file', async () => {
    const { home } = homeWith(100 * MiB);
    const { make, stateDir } = await openSandboxes({ home });
    const box = await make({ spec: { builtin_tools: ['claude'] } });
    expect(await inHomeOf(box, 'cat .claude/plain; stat -c %s .claude/x')).toBe(`mine${100 * MiB}\n`);
    const copy = lstatSync(join(stateDir, 'sandboxes', box.id, 'shadow/claude/x'));
    expect(copy.size).toBe(100 * MiB);
    expect(copy.blocks * 512).toBeLessThan(MiB);
  });

  it('is copied no further once its sandbox is removed, and leaves nothing', async () => {
    const { home } = homeWith(15 * 1024 * MiB);
    const { sandboxes, stateDir } = await openSandboxes({ home });
    const spec = { ...testImage(), builtin_tools: ['claude'] };
    const box = await sandboxes.create(createBody.parse({ spec }));
    for await (const event of sandboxes.events.follow(0, new AbortController().signal))
      if (event.type === 'sandbox.progress' && event.step === 'copy') break;
    const began = performance.now();
    await box.remove({ force: true });
    await expect(box.ready()).rejects.toMatchObject({ code: 'cancelled' });
    // Reading 15 GiB of zeros takes longer than that.
    expect(performance.now() - began).toBeLessThan(8000);
    expect(await readdir(join(stateDir, 'sandboxes'))).toEqual([]);
  });
});

describe('[N5] a file of 1 TiB without data', () => {
  it.each(['workspace', 'copy', 'single file'])('is not copied into a sandbox: %s', async (how) => {
    const folder = await newFolder();
    await mkdir(join(folder, 'sub'));
    await writeFile(join(folder, 'plain'), 'plain\n');
    await writeFile(join(folder, 'sub/huge'), '');
    await truncate(join(folder, 'sub/huge'), TiB);
    const { make } = await openSandboxes();
    const spec = (excludes: string[]) => {
      const name = `endless-${process.pid}-${how.replace(' ', '-')}-${excludes.length}`;
      const more = excludes.length === 0 ? {} : { exclude_patterns: excludes };
      if (how === 'workspace') return { name, workspace: { path: folder, mode: 'copy' as const, ...more } };
      const source = how === 'copy' ? folder : join(folder, excludes.length === 0 ? 'sub/huge' : 'plain');
      return { name, copies: [{ source, target: '/data', ...(how === 'copy' ? more : {}) }] };
    };
    await expect(make({ spec: spec([]) })).rejects.toMatchObject({
      code: 'copy_too_large',
      message: expect.stringContaining('sub/huge'),
      advice: expect.stringContaining('exclude_patterns'),
    });
    await make({ spec: spec(['huge']) });
  });

  it.each(['folder', 'single file'])('is read no further once its sandbox is removed: %s', async (how) => {
    const folder = await newFolder();
    const large = join(folder, 'large');
    await writeFile(large, '');
    await truncate(large, 15 * 1024 * MiB);
    const { sandboxes } = await openSandboxes();
    const copies = [{ source: how === 'folder' ? folder : large, target: '/data' }];
    const box = await sandboxes.create(createBody.parse({ spec: { ...testImage(), copies } }));
    await until(() => hasOpen(large));
    await box.remove({ force: true });
    await expect(box.ready()).rejects.toMatchObject({ code: 'cancelled' });
    expect(hasOpen(large)).toBe(false);
  });

  it('is not uploaded, alone or in a folder, and a smaller one is', async () => {
    const folder = await newFolder();
    const huge = join(folder, 'huge');
    await writeFile(huge, '');
    await truncate(huge, TiB);
    const name = `endless-in-${process.pid}`;
    expect((await sally(['create', '--name', name, ...imageFlags()])).code).toBe(0);
    try {
      for (const from of [huge, folder]) {
        const { code, stderr } = await sally(['cp', from, `${name}:/tmp/in`]);
        expect(code).not.toBe(0);
        expect(stderr).toMatch(/huge .*holes/);
      }
      await truncate(huge, 3 * MiB);
      for (const from of [huge, folder])
        expect((await sally(['cp', from, `${name}:/tmp/in-${from.length}`])).code).toBe(0);
      expect((await stat(huge)).blocks).toBe(0);
    } finally {
      await sally(['rm', '--force', name]);
    }
  });
});

describe('[N5] the hash of a build context', () => {
  it.each(['look', 'why', 'build'] as const)('is read no further once its client left: %s', async (verb) => {
    const folder = await newFolder();
    await writeFile(join(folder, 'Dockerfile.sallyport'), 'FROM a\nCOPY . /\n');
    const { client, health } = await testDaemon();
    const images = new Images({ client });
    expect(await images.look(folder)).toMatchObject({ files: 1 });
    const large = join(folder, 'large');
    await writeFile(large, '');
    await truncate(large, 15 * 1024 * MiB);
    const { pid } = await health();
    const leaving = new AbortController();
    const asked = images[verb](folder, { signal: leaving.signal });
    asked.catch(() => {});
    await until(() => hasOpen(large, pid));
    leaving.abort();
    await expect(asked).rejects.toThrow();
    const began = performance.now();
    await until(() => !hasOpen(large, pid));
    // Reading 15 GiB of zeros takes longer than that.
    expect(performance.now() - began).toBeLessThan(5000);
  });
});

describe("[N5] the search for links that lead out of a tool's folder", () => {
  const spec = { ...testImage(), builtin_tools: ['codex' as const] };

  it('ends with the call, and nothing is made', async () => {
    const { make, sandboxes } = await openSandboxes({ home: toolHome({ ...bareTools, '.codex/x': '' }) });
    const left = AbortSignal.abort(new Error('left'));
    await expect(sandboxes.create(createBody.parse({ spec }), left)).rejects.toThrow('left');
    expect(sandboxes.list()).toEqual([]);
    await make({ spec });
  });
});
