import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { lookIntoWorkspace } from './workspace-look.ts';

it('[N5] finds names by their pattern, also in the folders of such names', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-look-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const files = [
    'x.code-workspace',
    '.config/lefthook.yml',
    '.config/other',
    'mise/config.local.toml',
    'src/x',
  ];
  for (const file of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), '');
  }
  const look = await lookIntoWorkspace(folder, {}, { isPlaceholder: () => false, programs: [] });
  expect([...(look.executed ?? [])].sort()).toEqual([
    '.config/lefthook.yml',
    'mise/config.local.toml',
    'x.code-workspace',
  ]);
  expect(look.found).toMatchObject({ '.config': 'directory', '.config/lefthook.yml': 'file' });
});
