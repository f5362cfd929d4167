import { mkdirSync, renameSync, rmdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { folderWatch } from './folder-watch.ts';

test('[N5] a folder is another one after a swap, by a link as well, and the same after changes in it', () => {
  const root = temporaryFolder();
  const [folder, other] = [join(root, 'folder'), join(root, 'other')];
  mkdirSync(folder);
  mkdirSync(other);
  const isSame = folderWatch(folder);
  writeFileSync(join(folder, 'file'), '');
  expect(isSame()).toBe(true);
  renameSync(folder, join(root, 'aside'));
  expect(isSame()).toBe(false);
  symlinkSync(other, folder);
  expect(isSame()).toBe(false);
  renameSync(folder, join(root, 'link'));
  renameSync(join(root, 'aside'), folder);
  expect(isSame()).toBe(true);
  rmdirSync(other);
  expect(folderWatch(other)()).toBe(false);
});
