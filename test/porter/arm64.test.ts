/** The arm64 porter is cross-compiled; under emulation it must do what the native one does. */

import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { porterBinaryPath } from '../../src/porter/binary.ts';
import { connectPorter, runIn, startPorter } from '../support/porter-child.ts';
import { bytesOf, filesInFolder, gather } from '../support/porter-files.ts';
import { arm64Emulator, requirement } from '../support/requires.ts';

const ready = requirement(
  'the arm64 porter and an emulator for it',
  existsSync(porterBinaryPath('arm64')) && (process.arch === 'arm64' || arm64Emulator !== undefined),
);

describe.runIf(ready)('the arm64 porter', () => {
  const wrapper = process.arch === 'arm64' || arm64Emulator === undefined ? [] : [arm64Emulator];

  it('greets and answers', async () => {
    const porter = await connectPorter(startPorter(['--exit-with-host'], wrapper, 'arm64'));
    expect(porter.welcome.buildId).toMatch(/^[0-9a-f]{16}$/);
    await porter.ping();
    expect(await porter.list()).toEqual([]);
  });

  it('works on files', async () => {
    const { files, at } = await filesInFolder(() => startPorter(['--exit-with-host'], wrapper, 'arm64'));
    const content = randomBytes(300_000);
    await files.mkdir(at('d', 'e'), { parents: true, mode: 0o750 });
    await files.write(at('d', 'e', 'f'), content);
    expect((await bytesOf(files.read(at('d', 'e', 'f')))).equals(content)).toBe(true);
    expect(await files.stat(at('d', 'e'))).toMatchObject({ kind: 'directory', mode: 0o750 });
    await files.symlink('f', at('d', 'e', 'link'));
    expect((await files.readlink(at('d', 'e', 'link'))).toString()).toBe('f');
    await files.rename(at('d', 'e', 'f'), at('d', 'e', 'g'));
    expect((await gather(files.list(at('d', 'e')))).map(({ name }) => name.toString())).toEqual([
      'g',
      'link',
    ]);
    expect(await gather(files.getTree(at('d')))).toHaveLength(3);
    await files.remove(at('d'), { recursive: true });
    await expect(files.stat(at('d'))).rejects.toMatchObject({ code: 'file_not_found' });
  });

  it('runs no program where its filter cannot be installed', async () => {
    // Emulation of a user's programs knows no seccomp: what would run unfiltered must not run at all.
    const porter = await connectPorter(startPorter(['--exit-with-host'], wrapper, 'arm64'));
    const outcome = await runIn(porter, ['sh', '-c', 'echo it ran']).catch((error: unknown) => error);
    expect(outcome).not.toMatchObject({ exitCode: 0 });
    expect(outcome).not.toMatchObject({ stdout: expect.stringContaining('it ran') });
  });
});
