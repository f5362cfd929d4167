/** The watch over what sandboxes write, where the engine's disk is not to be seen, without a container engine, and on the command line. */

import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isSallyportError } from '../../src/protocol/errors.ts';
import type { DiskOver } from '../../src/sandboxes/records.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { makeBox, newFolder, sally } from '../support/cli.ts';
import { imageFlags } from '../support/engine-under-test.ts';
import { canMakeDisk, mountLoopDisk } from '../support/loop-disk.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { openSandboxes, runInSandbox, startInSandbox } from '../support/sandboxes.ts';
import { asRoot, when } from '../support/selection.ts';
import { smallDisk } from '../support/small-disk.ts';

const mib = 2 ** 20;
/** Short, so that nobody waits for a minute. */
const times = { sampleMs: 100, periodMs: 300, deadlineMs: 60_000 };
const write = (mebibytes: number, path: string): readonly string[] => [
  'sh',
  '-c',
  `head -c ${mebibytes}M /dev/zero > ${path} && sync ${path}`,
];

const errorOf = async (work: Promise<unknown>): Promise<unknown> =>
  await work.then(
    () => undefined,
    (error: unknown) => (isSallyportError(error) ? error.code : error),
  );

/** Writes less than it may, then more. */
async function expectHeld(box: Sandbox, folder: string, how: RegExp): Promise<void> {
  expect((await runInSandbox(box, write(30, `${folder}/small`))).exec).toMatchObject({ exit_code: 0 });
  const row = (await box.verify()).checks.find(({ name }) => name === 'disk');
  expect(row).toMatchObject({ expected: 'at most 64 MiB', found: expect.stringMatching(how), status: 'ok' });
  expect(box.state).toBe('READY');
  const command = await startInSandbox(box, [
    'sh',
    '-c',
    `head -c 100M /dev/zero > ${folder}/big; exec tail -f /dev/null`,
  ]);
  expect((await command.result()).exec).toMatchObject({
    state: 'lost',
    error: { code: 'disk_limit_exceeded' },
  });
  // Its turn comes after the stop.
  expect(await errorOf(box.start())).toBe('disk_limit_exceeded');
  expect(box.record).toMatchObject({ state: 'STOPPED', overDisk: { rule: 'limit', limit: 64 * mib } });
  // By a start for files alone, which ends by itself.
  await (await box.files()).remove(Buffer.from(`${folder}/big`), { recursive: false });
  expect(box.record).toMatchObject({ state: 'READY', cleanUp: 'brief' });
  await box.start();
  expect((await runInSandbox(box, ['ls', folder])).stdout.data).toContain('small');
  expect(box.record.cleanUp).toBeUndefined();
}

describe('[N5] a limit that is exceeded before the sandbox is ready', () => {
  const over: DiskOver = { rule: 'limit', of: 'bytes', limit: 64 * mib, used: 90 * mib, service: 'store' };
  /** The watch finds it over its limit at this step of a create or start. Undefined: never. */
  async function exceedingAt() {
    const plan: { step?: string } = {};
    const checkpoint = (name: string): void => {
      if (name !== plan.step) return;
      for (const box of opened.sandboxes.list())
        void box.watched.exceed(over).catch((error: unknown) => opened.reports.push(String(error)));
    };
    const opened = await openSandboxes({ checkpoint });
    const running = async () =>
      (await opened.world.engine.list(opened.world.owner)).filter((box) => box.status === 'running');
    return { ...opened, plan, running };
  }

  // The container does not run, is about to, and runs.
  for (const step of ['create.recorded', 'create.pinned', 'create.greeted']) {
    it(`fails a create at ${step}, and nothing runs`, async () => {
      const { make, plan, running, sandboxes, reports } = await exceedingAt();
      plan.step = step;
      expect(await errorOf(make())).toBe('disk_limit_exceeded');
      expect(sandboxes.list()[0]?.record).toMatchObject({ state: 'FAILED', overDisk: over });
      expect(await running()).toEqual([]);
      expect(reports).toEqual([]);
    });
  }

  it('fails a start, and the next one without it makes the sandbox ready', async () => {
    const { make, plan, running, reports } = await exceedingAt();
    const box = await make();
    await box.stop(0);
    plan.step = 'create.pinned';
    expect(await errorOf(box.start())).toBe('disk_limit_exceeded');
    expect(box.record).toMatchObject({ state: 'FAILED', overDisk: over });
    expect(await running()).toEqual([]);
    delete plan.step;
    await box.start();
    expect(box.record).toMatchObject({ state: 'READY' });
    expect(box.record.overDisk).toBeUndefined();
    expect(await running()).toHaveLength(1);
    expect(reports).toEqual([]);
  });
});

when(asRoot, canMakeDisk('ext4')).describe('[N5] a disk that is not to be seen', () => {
  const disk = smallDisk('ext4', 700);
  when(asRoot).it('is watched by sizes alone, every period, and that is said', async () => {
    const { make, sandboxes } = await openSandboxes({
      disk: { times, isHere: false },
      connection: disk.connection(),
    });
    const box = await make({ spec: { limits: { disk: '64m' } } });
    await expectHeld(box, '/var/tmp', /^watched: 30 MiB of 64 MiB, measured once a minute/);
    for (const one of sandboxes.list()) await one.remove({ force: true });
  });
});

when(asRoot, canMakeDisk('ext4'), requirement('bubblewrap', commandExists('bwrap'))).describe(
  '[N5] without a container engine',
  () => {
    it('the home of a sandbox has the same limit', async () => {
      const stateDir = await mkdtemp(join(tmpdir(), 'sally-state-'));
      const unmount = mountLoopDisk(stateDir, 'ext4', 500);
      await chmod(stateDir, 0o700);
      onTestFinished(async () => {
        unmount();
        await rm(stateDir, { recursive: true, force: true });
      });
      const { make, sandboxes } = await openSandboxes({
        stateDir,
        on: 'bubblewrap',
        disk: { times, isHere: true },
      });
      const box = await make({ spec: { limits: { disk: '64m' } } });
      await expectHeld(box, '/home/sally', /^watched: 30 MiB of 64 MiB, the free space is sampled/);
      for (const one of sandboxes.list()) await one.remove({ force: true });
    });
  },
);

when(asRoot, canMakeDisk('ext4')).describe('[N5] the disk limit on the command line', () => {
  const disk = smallDisk('ext4', 700);
  when(asRoot).it('is a flag, is named when it is exceeded, and is raised or made room in', async () => {
    // A daemon of its own: the one of this file works with the engine of all tests.
    const stateDir = await newFolder('own');
    const env = { DOCKER_HOST: disk.connection().endpoint, SALLYPORT_STATE_DIR: stateDir };
    onTestFinished(async () => void (await sally(['daemon', 'stop'], { env })));
    const call = (args: readonly string[], input?: string) =>
      sally(args, { env, ...(input === undefined ? {} : { input }) });
    const tooSmall = await call(['create', '--disk', '1m', ...imageFlags()]);
    expect(tooSmall).toMatchObject({ code: 2, stderr: expect.stringContaining('at least 64m') });
    const box = await makeBox(['--disk', '64m'], { env });
    const shown = JSON.parse((await call(['inspect', box])).stdout) as {
      limits: { disk_bytes: number };
    }[];
    expect(shown[0]?.limits.disk_bytes).toBe(64 * mib);
    expect((await call(['exec', box, 'sh', '-c', 'head -c 20M /dev/zero > /var/tmp/small'])).code).toBe(0);

    const over = await call([
      'exec',
      box,
      'sh',
      '-c',
      'head -c 200M /dev/zero > /var/tmp/big; exec tail -f /dev/null',
    ]);
    expect(over).toMatchObject({ code: 125, stderr: expect.stringMatching(/the disk limit is 64 MiB/) });
    expect(over.stderr).toMatch(new RegExp(`sally start --clean-up ${box}.*sally start --disk \\w+ ${box}`));
    const refused = await call(['start', box]);
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`sally start --clean-up ${box}`),
    });
    expect((await call(['files', 'ls', `${box}:/var/tmp`])).stdout).toBe('big\nsmall\n');
    const copied = await call(['cp', `${box}:/var/tmp/small`, join(await newFolder(), 'copied')]);
    expect(copied).toMatchObject({ code: 0 });

    const cleaning = await call(['start', '--clean-up', box]);
    expect(cleaning).toMatchObject({ code: 0, stderr: expect.stringContaining(`sally shell ${box}`) });
    expect((await call(['exec', box, 'true'])).code).toBe(125);
    const shell = await call(['shell', box], 'rm /var/tmp/big\n');
    expect(shell.code).toBe(0);
    expect((await call(['start', box])).code).toBe(0);
    expect((await call(['exec', box, 'ls', '/var/tmp'])).stdout).toBe('small\n');
    expect((await call(['start', '--disk', '1g', box])).code).toBe(0);
    const verified = await call(['verify', box]);
    expect(verified.stdout).toMatch(/ok\s+disk\s+watched: \d+ MiB of 1\.0 GiB/);
    expect((await call(['events', box])).stdout).toMatch(/disk limit exceeded: .* of 64 MiB/);
  });
});
