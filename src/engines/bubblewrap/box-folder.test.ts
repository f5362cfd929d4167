import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { BoxFolders, type KeptBox } from './box-folder.ts';

async function newRoot(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'sallyport-boxes-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  return root;
}

// What is asked of a box is not looked at here.
const kept = { box: {}, home: {}, createdMs: 0 } as unknown as KeptBox;

it('leaves no folder of a box that could not be filled', async () => {
  const root = await newRoot();
  const folders = new BoxFolders(root);
  const filling = folders.add(
    kept,
    () => {},
    () => Promise.reject(new Error('no room')),
  );
  await expect(filling).rejects.toThrow('no room');
  expect(await readdir(root)).toEqual([]);
});

it('tells what was never finished from a box, and takes only that away', async () => {
  const root = await newRoot();
  const folders = new BoxFolders(root);
  const whole = await folders.add(
    kept,
    () => {},
    async () => {},
  );
  for (const name of ['bw-0123456789abcdef01234567', 'etc-0123456789abcdef']) {
    await mkdir(join(root, name, 'inside'), { recursive: true });
  }
  expect(await folders.removeUnfinished()).toBe(1);
  expect((await readdir(root)).sort()).toEqual([whole, 'etc-0123456789abcdef'].sort());
  expect(await new BoxFolders(join(root, 'nowhere')).removeUnfinished()).toBe(0);
});
