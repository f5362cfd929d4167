/**
 * No set-user-id or set-group-id bit can be made inside. In a live workspace such a file would give the owner's identity to
 * every other user of the machine. The same program makes the same files outside, where each act sets the bits.
 */

import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { onDocker } from '../support/engine-under-test.ts';
import { connectPorter, runIn } from '../support/porter-child.ts';
import { commandExists, isRoot, requirement } from '../support/requires.ts';
import { openSandboxes, runInSandbox } from '../support/sandboxes.ts';
import { asRoot, dockerAlone, isSelected, onGvisor } from '../support/selection.ts';
import {
  absentHere,
  doneModes,
  expectNoSetId,
  findings,
  harmlessModes,
  modeOf,
  owner,
  probeWorkspace,
  setIdModes,
  withSetId,
} from '../support/set-id-modes.ts';

const hasGvisor =
  isSelected(dockerAlone, 'the same on gVisor') &&
  isSelected(asRoot, 'the same on gVisor') &&
  isSelected(onGvisor, 'the same on gVisor') &&
  requirement('gVisor (runsc)', commandExists('runsc'));
const hasBubblewrap = requirement('bubblewrap', commandExists('bwrap'));

it('[N5] set-id bits are refused by porter’s filter alone; without it each of these calls makes them', async () => {
  const porter = await connectPorter();
  const folder = probeWorkspace();
  await expectNoSetId(
    folder,
    async (mode) => (await runIn(porter, [join(folder, 'probe'), 'modes', folder, mode])).stdout,
  );
  const outside = probeWorkspace();
  for (const mode of setIdModes) {
    const output = execFileSync(join(outside, 'probe'), ['modes', outside, mode], { encoding: 'utf8' });
    const found = findings(output);
    expect(found, mode).toMatchObject({ ...harmlessModes, ...doneModes, ...absentHere(found) });
    const made = withSetId(outside).filter((name) => name.endsWith(`-${mode}`));
    const expected = Object.keys(doneModes).filter((name) => name !== 'openat-unnamed' && found[name] === 0);
    expect(made, mode).toEqual(expect.arrayContaining(expected.map((name) => `${name}-${mode}`)));
    expect(made, mode).not.toContain(`mkdirat-${mode}`);
  }
});

async function boxOf(runtime: string, folder: string): Promise<Sandbox> {
  const { make } = await openSandboxes(runtime === 'bwrap' ? { on: 'bubblewrap' } : {});
  return await make({
    spec: { workspace: { path: folder }, ...(runtime === 'runsc' ? { runtime } : {}) },
  });
}

const runtimes = [
  ...(onDocker ? ['runc'] : []),
  ...(hasGvisor ? ['runsc'] : []),
  ...(hasBubblewrap ? ['bwrap'] : []),
];

describe.each(runtimes)('[N5] a live workspace on %s', (runtime) => {
  it('gets no set-id bit from inside, whatever call asks for it', async () => {
    const folder = probeWorkspace();
    const box = await boxOf(runtime, folder);
    await expectNoSetId(folder, async (mode) => {
      const { stdout } = await runInSandbox(box, ['./probe', 'modes', '.', mode]);
      return stdout.data;
    });
  });

  it('gets none from the operations of porter either', async () => {
    const folder = probeWorkspace();
    const files = await (await boxOf(runtime, folder)).files();
    await files.write('/workspace/file', Buffer.from('x'));
    for (const mode of [0o4755, 0o2755]) {
      await expect(files.chmod('/workspace/file', mode)).rejects.toMatchObject({ code: 'file_denied' });
      await expect(files.mkdir('/workspace/folder', { mode })).rejects.toMatchObject({ code: 'file_denied' });
      await expect(files.write('/workspace/new', Buffer.from('x'), { mode })).rejects.toThrow();
      await files.putTree('/workspace', [{ kind: 'file', path: 'put', mode, body: Buffer.from('x') }]);
    }
    await files.chmod('/workspace/file', 0o1755);
    await files.mkdir('/workspace/folder', { mode: 0o1777 });
    expect(withSetId(folder)).toEqual([]);
    expect(modeOf(join(folder, 'put'))).toBe(0o755);
    expect(modeOf(join(folder, 'file'))).toBe(0o1755);
    expect(modeOf(join(folder, 'folder'))).toBe(0o1777);
  });

  it('keeps the set-id bits that are there, and a folder hands its group on as ever', async () => {
    const folder = probeWorkspace();
    mkdirSync(join(folder, 'shared'));
    writeFileSync(join(folder, 'shared', 'tool'), '');
    if (isRoot) for (const name of ['shared', 'shared/tool']) chownSync(join(folder, name), owner, owner);
    chmodSync(join(folder, 'shared'), 0o2775);
    const box = await boxOf(runtime, folder);
    const script =
      'cp -r shared copy && mkdir shared/below && tar -cf - shared | tar -C /tmp -xf - && ls /tmp/shared';
    const { exec, output } = await runInSandbox(box, ['sh', '-c', script]);
    expect(output.data).toBe('below\ntool\n');
    expect(exec).toMatchObject({ state: 'exited', exit_code: 0 });
    expect(modeOf(join(folder, 'shared'))).toBe(0o2775);
    expect(modeOf(join(folder, 'shared', 'below')) & 0o2000).toBe(0o2000);
  });

  it('tar -xp says of a set-id member that it may not, and extracts all others', async () => {
    const folder = probeWorkspace();
    writeFileSync(join(folder, 'plain'), 'plain');
    copyFileSync(join(folder, 'plain'), join(folder, 'tool'));
    chmodSync(join(folder, 'tool'), 0o4755);
    execFileSync('tar', ['-cf', 'archive.tar', 'tool', 'plain'], { cwd: folder });
    const box = await boxOf(runtime, folder);
    const { exec, stderr } = await runInSandbox(box, ['tar', '-C', '/tmp', '-xpf', 'archive.tar']);
    expect(exec.exit_code).toBe(2);
    expect(stderr.data).toMatch(/tool: Cannot change mode to rwsr-xr-x: Operation not permitted/);
    const { stdout } = await runInSandbox(box, ['sh', '-c', 'cat /tmp/plain; find /tmp -perm /6000']);
    expect(stdout.data).toBe('plain');
  });
});
