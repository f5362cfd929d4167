/** The arm64 porter is cross-compiled; under emulation it must do what the native one does. */

import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { porterBinaryPath } from '../../src/porter/binary.ts';
import { connectPorter, runIn, startPorter } from '../support/porter-child.ts';
import { commandExists, requirement } from '../support/requires.ts';

const emulator = 'qemu-aarch64-static';
const ready = requirement(
  'the arm64 porter and an emulator for it',
  existsSync(porterBinaryPath('arm64')) && (process.arch === 'arm64' || commandExists(emulator)),
);

describe.runIf(ready)('the arm64 porter', () => {
  const wrapper = process.arch === 'arm64' ? [] : [emulator];

  it('greets and answers', async () => {
    const porter = await connectPorter(startPorter(['--exit-with-host'], wrapper, 'arm64'));
    expect(porter.welcome.buildId).toMatch(/^[0-9a-f]{16}$/);
    await porter.ping();
    expect(await porter.list()).toEqual([]);
  });

  it('runs no program where its filter cannot be installed', async () => {
    // Emulation of a user's programs knows no seccomp: what would run unfiltered must not run at all.
    const porter = await connectPorter(startPorter(['--exit-with-host'], wrapper, 'arm64'));
    const outcome = await runIn(porter, ['sh', '-c', 'echo it ran']).catch((error: unknown) => error);
    expect(outcome).not.toMatchObject({ exitCode: 0 });
    expect(outcome).not.toMatchObject({ stdout: expect.stringContaining('it ran') });
  });
});
