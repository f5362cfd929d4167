import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { contextTar } from './context-tar.ts';
import { readProjectSource } from './project-source.ts';

it('[O1] a context that changed fails for who reads it, and for nobody before', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-context-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'Dockerfile.sallyport'), 'FROM a\nCOPY . /\n');
  writeFileSync(join(folder, 'a'), 'approved');
  const source = await readProjectSource({ folder }, { loadDigests: () => new Map(), saveDigests: () => {} });
  if (source === undefined) throw new Error('no Dockerfile');
  expect((await buffer(contextTar(source))).includes('approved')).toBe(true);

  writeFileSync(join(folder, 'a'), 'another');
  const late = contextTar(source);
  // An engine that is slow to open its connection: a failure that nobody listens for would end this process.
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  await expect(buffer(late)).rejects.toMatchObject({ code: 'copy_changed', details: { path: 'a' } });
});
