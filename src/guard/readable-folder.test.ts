import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, onTestFinished, test } from 'vitest';
import { bundleProgram } from '../../test/support/child-program.ts';
import type { HeldCopy } from '../../test/support/guard-copy-holder.ts';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { readableFolder } from './readable-folder.ts';

function project(): string {
  const folder = join(temporaryFolder(), 'project');
  mkdirSync(join(folder, 'src'), { recursive: true });
  writeFileSync(join(folder, 'src', 'a.txt'), 'a\n', { mode: 0o644 });
  writeFileSync(join(folder, 'run'), '#!/bin/sh\n', { mode: 0o755 });
  symlinkSync('/etc/passwd', join(folder, 'link'));
  for (const each of [folder, join(folder, 'src')]) chmodSync(each, 0o755);
  return folder;
}

const limits = { entries: 100, bytes: 10_000 };
const modeOf = (path: string): number => statSync(path).mode & 0o777;

describe('[C2] the folder of a guarded command', () => {
  test('is given as it is where everybody may read it', async () => {
    const folder = project();
    expect(await readableFolder(folder, temporaryFolder(), limits)).toMatchObject({
      path: folder,
      isCopy: false,
    });
  });

  test.each([
    ['itself', '.'],
    ['a folder in it', 'src'],
    ['a file in it', 'src/a.txt'],
  ])('is copied where nobody may not read %s, and stays as it is', async (_what, closed) => {
    const folder = project();
    chmodSync(join(folder, closed), closed.endsWith('.txt') ? 0o600 : 0o700);
    const before = modeOf(join(folder, closed));
    const { path = '', isCopy, note, remove } = await readableFolder(folder, temporaryFolder(), limits);
    expect({ isCopy, note }).toEqual({ isCopy: true, note: expect.stringContaining('copy') });
    expect(modeOf(join(folder, closed))).toBe(before);
    expect(readFileSync(join(path, 'src', 'a.txt'), 'utf8')).toBe('a\n');
    expect([path, join(path, 'src'), join(path, 'src', 'a.txt'), join(path, 'run')].map(modeOf)).toEqual([
      0o755, 0o755, 0o644, 0o755,
    ]);
    // A link is copied as one, and other users of the machine do not get to the copy.
    expect(readlinkSync(join(path, 'link'))).toBe('/etc/passwd');
    expect(modeOf(dirname(path))).toBe(0o700);
    await remove();
    expect(existsSync(dirname(path))).toBe(false);
  });

  test('is copied below the state folder; the copy of a killed process goes at the next command, and no other', async () => {
    const folder = project();
    chmodSync(folder, 0o700);
    const stateDir = temporaryFolder();
    const { outfile } = await bundleProgram('./guard-copy-holder.ts');
    const holder = async () => {
      const child = spawn(process.execPath, [outfile, folder, stateDir], {
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      const kill = async (): Promise<void> => {
        if (child.signalCode !== null) return;
        const gone = once(child, 'exit');
        child.kill('SIGKILL');
        await gone;
      };
      onTestFinished(kill);
      const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
      return { ...(JSON.parse(line) as HeldCopy), kill };
    };
    const [killed, alive] = [await holder(), await holder()];
    await killed.kill();
    expect([killed, alive].map(({ path }) => existsSync(path))).toEqual([true, true]);
    const next = await readableFolder(folder, stateDir, limits);
    expect([killed, alive].map(({ path }) => existsSync(dirname(path)))).toEqual([false, true]);
    for (const path of [killed.path, alive.path, next.path ?? ''])
      expect(dirname(dirname(path))).toBe(join(realpathSync(stateDir), 'guard-copies'));
    expect(modeOf(dirname(dirname(alive.path)))).toBe(0o700);
    await next.remove();
    // Also by one that needs no copy.
    await alive.kill();
    chmodSync(folder, 0o755);
    expect(await readableFolder(folder, stateDir, limits)).toMatchObject({ isCopy: false });
    expect(readdirSync(join(stateDir, 'guard-copies'))).toEqual([]);
  });

  test('is not given where a copy would be too large, and the answer says so', async () => {
    const folder = project();
    chmodSync(folder, 0o700);
    for (const small of [
      { entries: 2, bytes: 10_000 },
      { entries: 100, bytes: 3 },
    ]) {
      const { path, note } = await readableFolder(folder, temporaryFolder(), small);
      expect(path).toBeUndefined();
      expect(note).toContain('did not have this folder');
    }
  });
});
