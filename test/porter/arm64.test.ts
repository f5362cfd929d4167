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
  it('greets, runs a program and tells its exit code', async () => {
    const wrapper = process.arch === 'arm64' ? [] : [emulator];
    const porter = await connectPorter(startPorter(['--exit-with-host'], wrapper, 'arm64'));
    expect(porter.welcome.buildId).toMatch(/^[0-9a-f]{16}$/);
    const result = await runIn(porter, ['sh', '-c', 'echo from inside; exit 9']);
    expect(result).toMatchObject({ stdout: 'from inside\n', exitCode: 9 });
  });
});
