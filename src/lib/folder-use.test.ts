import { chmod, link, mkdir, mkdtemp, open, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { asOrdinaryUser, when } from '../../test/support/selection.ts';
import { folderUse } from './folder-use.ts';

const mib = 2 ** 20;

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sally-use-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

describe.runIf(process.platform === 'linux')('the use of a folder', () => {
  it('[N5] counts blocks and hard links once, and neither holes nor what links point to', async () => {
    const folder = await newFolder();
    await writeFile(join(folder, 'file'), Buffer.alloc(3 * mib, 1));
    await link(join(folder, 'file'), join(folder, 'same'));
    await symlink('/', join(folder, 'everything'));
    await using sparse = await open(join(folder, 'hole'), 'w');
    await sparse.truncate(1024 * 1024 * mib);
    const { amount, isComplete } = await folderUse(folder, { of: 'bytes' });
    expect(isComplete).toBe(true);
    expect(amount).toBeGreaterThanOrEqual(3 * mib);
    expect(amount).toBeLessThan(3.2 * mib);
    // The folder, the file, the hole and the link.
    expect(await folderUse(folder, { of: 'files' })).toEqual({ amount: 4, isComplete: true });
  });

  it('[N5] counts the blocks of many small files', async () => {
    const folder = await newFolder();
    for (let number = 0; number < 500; number++) await writeFile(join(folder, `${number}`), 'x');
    expect((await folderUse(folder, { of: 'bytes' })).amount).toBeGreaterThan(500 * 512);
  });

  it('rejects when it is aborted, and for a missing folder', async () => {
    await expect(folderUse('/', { of: 'bytes', signal: AbortSignal.timeout(20) })).rejects.toMatchObject({
      name: 'AbortError',
    });
    await expect(folderUse('/nonexistent/folder', { of: 'bytes' })).rejects.toThrow(/printed no size/);
  });

  when(asOrdinaryUser).it('[N5] reports a folder that cannot be read', async () => {
    const folder = await newFolder();
    await mkdir(join(folder, 'closed'));
    expect((await folderUse(folder, { of: 'bytes' })).isComplete).toBe(true);
    await chmod(join(folder, 'closed'), 0);
    onTestFinished(() => chmod(join(folder, 'closed'), 0o700));
    expect((await folderUse(folder, { of: 'bytes' })).isComplete).toBe(false);
  });
});
