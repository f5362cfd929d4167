import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { removeTree } from './remove-tree.ts';

const newFolder = (): string => mkdtempSync(join(tmpdir(), 'sallyport-remove-'));

const nest = `
import os, sys
os.chdir(sys.argv[1])
for i in range(10000):
    os.mkdir('deep'); os.chdir('deep')
open('file', 'w')
`;

it('removes 10,000 folders in each other, which Node alone cannot', async () => {
  const folder = newFolder();
  execFileSync('python3', ['-c', nest, folder]);
  await expect(rm(folder, { recursive: true, force: true })).rejects.toMatchObject({ code: 'ENAMETOOLONG' });
  await removeTree(folder);
  expect(existsSync(folder)).toBe(false);
});

it('removes folders that their owner closed, and follows no link', async () => {
  const [folder, elsewhere] = [newFolder(), newFolder()];
  writeFileSync(join(elsewhere, 'kept'), '');
  mkdirSync(join(folder, 'closed', 'below'), { recursive: true });
  writeFileSync(join(folder, 'closed', 'below', 'file'), '');
  symlinkSync(elsewhere, join(folder, 'link'));
  chmodSync(join(folder, 'closed', 'below'), 0o500);
  chmodSync(join(folder, 'closed'), 0);
  await asOrdinaryUser([folder, join(folder, 'closed'), join(folder, 'closed', 'below')], async () => {
    await expect(rm(folder, { recursive: true, force: true })).rejects.toMatchObject({ code: 'EACCES' });
    await removeTree(folder);
  });
  expect(existsSync(folder)).toBe(false);
  expect(existsSync(join(elsewhere, 'kept'))).toBe(true);
  await removeTree(elsewhere);
});

it('is content with a folder that is not there', async () => {
  await removeTree(join(tmpdir(), 'sallyport-not-there'));
});

/** Root may enter everything. */
async function asOrdinaryUser(paths: readonly string[], act: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return await act();
  const nobody = 65_534;
  for (const path of paths) chownSync(path, nobody, nobody);
  process.seteuid?.(nobody);
  try {
    await act();
  } finally {
    process.seteuid?.(0);
  }
}
