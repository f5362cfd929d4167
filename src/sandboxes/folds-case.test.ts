import { linkSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { foldsCase } from './folds-case.ts';

const folder = (): string => {
  const root = mkdtempSync(join(tmpdir(), 'sallyport-case-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return root;
};

it('[N5] a folder takes names for the same if one thing is there under both', async () => {
  const root = folder();
  expect(await foldsCase(root)).toBe(false);
  writeFileSync(join(root, '.Vscode'), '');
  expect(await foldsCase(root)).toBe(false);
  // Another file is another thing.
  writeFileSync(join(root, '.vSCODE'), '');
  expect(await foldsCase(root)).toBe(false);
  rmSync(join(root, '.vSCODE'));
  // As such a folder shows it.
  linkSync(join(root, '.Vscode'), join(root, '.vSCODE'));
  expect(await foldsCase(root)).toBe(true);
  expect(await foldsCase(join(root, 'none'))).toBe(false);
});
