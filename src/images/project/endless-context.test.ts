/** A build context with a file that a program inside makes at no cost and that takes minutes to read. */

import { mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { hasOpen } from '../../../test/support/open-files.ts';
import { until } from '../../../test/support/until.ts';
import type { CachedDigest } from '../ports.ts';
import { contextTar } from './context-tar.ts';
import { type ProjectSource, readProjectSource } from './project-source.ts';

const GiB = 2 ** 30;

function projectFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-context-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'Dockerfile.sallyport'), 'FROM a\nCOPY . /\n');
  writeFileSync(join(folder, 'plain'), 'plain content');
  return folder;
}

function holes(folder: string, name: string, sizeBytes: number): string {
  const path = join(folder, name);
  writeFileSync(path, '');
  truncateSync(path, sizeBytes);
  return path;
}

async function read(
  folder: string,
  signal?: AbortSignal,
  known: ReadonlyMap<string, CachedDigest> = new Map(),
): Promise<ProjectSource> {
  const records = { loadDigests: () => new Map(known), saveDigests: () => {} };
  const source = await readProjectSource({ folder }, records, signal);
  if (source === undefined) throw new Error('no Dockerfile');
  return source;
}

const refusal = (name: string): object =>
  expect.objectContaining({
    code: 'copy_too_large',
    message: expect.stringContaining(name),
    details: { path: name },
    advice: expect.stringContaining('.dockerignore'),
  });

describe('[N5] a build context with holes', () => {
  it('of 1 TiB is refused before it is read, and is built without that file', async () => {
    const folder = projectFolder();
    holes(folder, 'huge', 2 ** 40);
    // It would take hours otherwise.
    await expect(read(folder, AbortSignal.timeout(10_000))).rejects.toEqual(refusal('huge'));

    writeFileSync(join(folder, '.dockerignore'), 'huge\n');
    const source = await read(folder);
    expect(source.inputs.map(({ name }) => name)).toContain('file:plain');
    expect((await buffer(contextTar(source))).includes('plain content')).toBe(true);
  });

  it('that are too large together is refused, also where the digest of the first file is known', async () => {
    const folder = projectFolder();
    const [one] = ['one', 'two'].map((name) => holes(folder, name, 9 * GiB));
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(one ?? '');
    const known = new Map([['one', { seen: [dev, ino, size, mtimeMs, ctimeMs] as const, digest: 'known' }]]);
    await expect(read(folder, AbortSignal.timeout(10_000), known)).rejects.toEqual(refusal('two'));
    rmSync(join(folder, 'two'));
    expect((await read(folder, AbortSignal.timeout(10_000), known)).files).toBe(3);
  });

  it('is not sent if the holes come after the approval', async () => {
    const folder = projectFolder();
    const source = await read(folder);
    holes(folder, 'huge', 2 ** 40);
    await expect(buffer(contextTar(source, AbortSignal.timeout(10_000)))).rejects.toEqual(refusal('huge'));
  });

  it('is kept as it is where the holes are small', async () => {
    const folder = projectFolder();
    holes(folder, 'small', 2 ** 20);
    const source = await read(folder);
    expect(source).toMatchObject({ files: 3, bytes: 2 ** 20 + 13 + 'FROM a\nCOPY . /\n'.length });
    expect((await buffer(contextTar(source))).length).toBeGreaterThan(2 ** 20);
  });

  it('is read no further once the call is cancelled: to hash it, to send it', async () => {
    const folder = projectFolder();
    const source = await read(folder);
    const large = holes(folder, 'large', 15 * GiB);
    for (const act of [
      (signal: AbortSignal) => read(folder, signal),
      // The file is not what was approved, which shows at its end.
      (signal: AbortSignal) => drained(contextTar(source, signal)),
    ]) {
      const leaving = new AbortController();
      const reading = act(leaving.signal);
      reading.catch(() => {});
      await until(() => hasOpen(large));
      leaving.abort(new Error('left'));
      await expect(reading).rejects.toThrow('left');
      await until(() => !hasOpen(large));
    }
  });

  it('is read no further once its reader left', async () => {
    const folder = projectFolder();
    const source = await read(folder);
    const large = holes(folder, 'large', 15 * GiB);
    const sent = contextTar(source);
    for await (const _ of sent) if (hasOpen(large)) break;
    // The reader got no end, so it left.
    expect(sent.readableEnded).toBe(false);
    await until(() => !hasOpen(large));
  });
});

async function drained(chunks: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of chunks);
}
