/** A bind shows what was there when it was made. What the host has removed, made again or swapped since is noticed before use. */

import {
  chmodSync,
  chownSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { SallyEvent } from '../../src/protocol/events.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { commandExists, isRoot, requirement } from '../support/requires.ts';
import { openSandboxes, runInSandbox, startInSandbox, type TestSandboxes } from '../support/sandboxes.ts';
import { asRoot, isSelected, onGvisor } from '../support/selection.ts';

const hasGvisor =
  isSelected(asRoot, 'the same on gVisor') &&
  isSelected(onGvisor, 'the same on gVisor') &&
  requirement('gVisor (runsc)', commandExists('runsc'));

/** A folder, owned by somebody who is not root. */
function makeFolder(path: string): string {
  mkdirSync(path);
  if (isRoot) chownSync(path, 1234, 1234);
  return path;
}

const output = async (box: Sandbox, script: string): Promise<string> =>
  (await runInSandbox(box, ['sh', '-c', script])).output.data;

async function untilNote({ sandboxes }: TestSandboxes, code: string): Promise<SallyEvent> {
  const abort = new AbortController();
  for await (const event of sandboxes.events.follow(0, abort.signal)) {
    if (event.type === 'sandbox.note' && event.code === code) return event;
  }
  throw new Error('the events ended');
}

const runtimes = ['runc', ...(hasGvisor ? ['runsc'] : [])];

describe('[G2] a folder that was removed and made again', () => {
  test.each(runtimes)('is what the next command sees, on %s, and an event says why', async (runtime) => {
    const world = await openSandboxes();
    const path = makeFolder(join(temporaryFolder(), 'work'));
    const box = await world.make({ spec: { workspace: { path }, runtime } });
    writeFileSync(join(path, 'file'), 'old');
    expect(await output(box, 'cat file')).toBe('old');
    rmSync(path, { recursive: true });
    makeFolder(path);
    writeFileSync(join(path, 'file'), 'new');
    expect(await output(box, 'cat file; echo more > other')).toBe('new');
    expect(readFileSync(join(path, 'other'), 'utf8')).toBe('more\n');
    expect(await untilNote(world, 'mount_healed')).toMatchObject({ message: expect.stringContaining(path) });
    expect((await box.verify()).ok).toBe(true);
  });

  test('is not mounted anew under a command that runs: that is said, and the next one is refused', async () => {
    const world = await openSandboxes();
    const path = makeFolder(join(temporaryFolder(), 'work'));
    const box = await world.make({ spec: { workspace: { path } } });
    const running = await startInSandbox(box, ['sleep', '1000'], { background: true });
    rmSync(path, { recursive: true });
    await expect(output(box, 'true')).rejects.toMatchObject({ code: 'mount_stale', details: { path } });
    makeFolder(path);
    await expect(output(box, 'true')).rejects.toMatchObject({ code: 'mount_stale', details: { running: 1 } });
    expect(running.view().state).toBe('running');
    expect(await untilNote(world, 'mount_stale')).toMatchObject({ message: expect.stringContaining(path) });
    await box.stop(0);
    await box.start();
    expect(await output(box, 'echo fine')).toBe('fine\n');
  });

  test('and that is gone for good is named, with the way out; the sandbox can still be removed', async () => {
    const { make } = await openSandboxes();
    const path = makeFolder(join(temporaryFolder(), 'work'));
    const box = await make({ spec: { workspace: { path } } });
    rmSync(path, { recursive: true });
    await expect(output(box, 'true')).rejects.toMatchObject({
      code: 'mount_stale',
      advice: expect.stringContaining('sally rm'),
    });
    await box.remove({ force: true });
  });

  test('loses its repository: the sandbox is made anew for the folder as it is', async () => {
    const world = await openSandboxes();
    const path = makeFolder(join(temporaryFolder(), 'work'));
    makeFolder(join(path, '.git'));
    writeFileSync(join(path, '.git/HEAD'), 'ref: refs/heads/main\n');
    const box = await world.make({ spec: { workspace: { path } } });
    expect(await output(box, 'echo x > .git/index && echo written')).toBe('written\n');
    rmSync(path, { recursive: true });
    makeFolder(path);
    expect(await output(box, 'mkdir .git/hooks 2>/dev/null || echo held')).toBe('held\n');
    await untilNote(world, 'workspace_renewed');
    await box.stop(0);
    expect(await readdir(path)).toEqual([]);
  });
});

describe('[O4] a source that is swapped', () => {
  /** Two folders beside each other; what is in the second one is not to be seen. */
  function places(): { readonly source: string; readonly secret: string; readonly swap: () => void } {
    const folder = temporaryFolder();
    const source = makeFolder(join(folder, 'source'));
    const secret = makeFolder(join(folder, 'secret'));
    writeFileSync(join(secret, 'key'), 'secret');
    // The kernel's clock has steps: two folders of one step would look alike where only time tells them apart.
    const changedAt = (path: string): bigint => statSync(path, { bigint: true }).ctimeNs;
    while (changedAt(secret) === changedAt(source)) chmodSync(secret, 0o755);
    const swap = (): void => {
      renameSync(source, join(folder, 'aside'));
      symlinkSync(secret, source);
    };
    return { source, secret, swap };
  }

  test.each(
    ['create.recorded', 'create.pinned'].flatMap((point) =>
      runtimes.map((runtime) => [point, runtime] as const),
    ),
  )('for a link at %s on %s ends the sandbox, and nothing is left of it', async (point, runtime) => {
    const { source, swap } = places();
    let swapped = false;
    const world = await openSandboxes({
      checkpoint: (name) => {
        if (name !== point || swapped) return;
        swapped = true;
        swap();
      },
    });
    const mounts = [{ source, target: '/data' }];
    await expect(world.make({ spec: { name: 'victim', mounts, runtime } })).rejects.toMatchObject({
      code: 'source_changed',
      details: { path: source },
    });
    expect(swapped).toBe(true);
    const box = world.sandboxes.get('victim');
    expect(box.record).toMatchObject({ state: 'FAILED' });
    expect(box.record.containerId).toBeUndefined();
    await box.remove({ force: true });
    expect(world.reports).toEqual([]);
  });

  test('nowhere is a sandbox with just what was named', async () => {
    const { source } = places();
    writeFileSync(join(source, 'data'), 'data');
    const { make } = await openSandboxes();
    const box = await make({ spec: { mounts: [{ source, target: '/data' }] } });
    expect(await output(box, 'cat /data/*')).toBe('data');
  });

  test('while it is stopped is found at the next start, which runs nothing', async () => {
    const { source, swap } = places();
    const { make } = await openSandboxes();
    const box = await make({ spec: { mounts: [{ source, target: '/data' }] } });
    await box.stop(0);
    swap();
    await expect(box.start()).rejects.toMatchObject({ code: 'source_changed' });
    expect(box.state).toBe('FAILED');
  });
});
