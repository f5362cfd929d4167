/** The same boxes through Podman's Docker-compatible API: one adapter, another engine behind it. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { dockerBoxEngine } from '../../src/engines/docker/box-engine.ts';
import { stopContainer } from '../../src/engines/docker/containers/stop.ts';
import { waitForExit } from '../../src/engines/docker/containers/wait.ts';
import { readPorterBinary } from '../../src/porter/binary.ts';
import { OutputQueue } from '../../src/porter/output-queue.ts';
import { queueSink } from '../../src/porter/output-sink.ts';
import { testEngine } from '../support/engine.ts';
import { copyImage, type PodmanService, startPodman } from '../support/podman.ts';
import { collect, runIn } from '../support/porter-child.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { openBox, type RuntimeBox, takeOver } from '../support/runtime-box.ts';
import { asRoot, when } from '../support/selection.ts';

const env = { PATH: '/usr/local/bin:/usr/bin:/bin' };

when(asRoot, requirement('Podman', commandExists('podman'))).describe('porter on Podman', () => {
  let podman: PodmanService;
  let image: string;

  beforeAll(async () => {
    const engine = testEngine();
    image = engine.image;
    podman = await startPodman();
    await copyImage(engine.connection, podman.connection, image);
  });
  afterAll(async () => {
    await podman?.stop();
  });

  const podmanBox = (): Promise<RuntimeBox> =>
    openBox({ connection: podman.connection, image, labels: testEngine().labels() });

  it('is delivered by a volume, greets as PID 1 and runs programs', async () => {
    const { porter } = await podmanBox();
    expect(porter.welcome).toMatchObject({ major: 1, pid: 1 });
    expect(
      await runIn(porter, ['sh', '-c', 'cat; echo err >&2; exit 7'], { input: Buffer.from('in') }),
    ).toMatchObject({ stdout: 'in', stderr: 'err\n', exitCode: 7 });
  });

  it('has what the box asked for in force: user, capabilities, limits, no network', async () => {
    const { porter } = await podmanBox();
    const script =
      'id -u; id -g; grep -E "^(CapEff|CapBnd|NoNewPrivs|Seccomp):" /proc/self/status; ls /sys/class/net; ' +
      'grep " /tmp " /proc/mounts | cut -d" " -f3,4; ulimit -n; ulimit -c; : > /.sallyport/x || true';
    const { stdout, stderr } = await runIn(porter, ['sh', '-c', script]);
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.replace(/\s+/g, ' ')),
    ).toEqual([
      '64000',
      '64000',
      'CapEff: 0000000000000000',
      'CapBnd: 0000000000000000',
      'NoNewPrivs: 1',
      'Seccomp: 2',
      'lo',
      'tmpfs rw,nosuid,nodev,relatime,size=1572864k',
      // What the engine's configuration says, because it is below what porter lowers to.
      '4096',
      '0',
    ]);
    expect(stderr).toContain('Read-only file system');
  });

  it('[N5] has a disk usage, and no size option on this storage', async () => {
    const { id, porter } = await podmanBox();
    const engine = dockerBoxEngine(podman.connection, readPorterBinary);
    const before = await engine.diskUse(id, { of: 'bytes' });
    await runIn(porter, ['sh', '-c', 'head -c 5M /dev/zero > /var/tmp/file; sync /var/tmp/file']);
    const { amount, isComplete } = await engine.diskUse(id, { of: 'bytes' });
    expect(isComplete).toBe(true);
    expect(amount - before.amount).toBeGreaterThanOrEqual(5 * 2 ** 20);
    expect(amount - before.amount).toBeLessThan(6 * 2 ** 20);
    expect(await engine.diskHold(id)).toEqual({ hasVolumes: false });
    expect(await engine.diskFolder()).toMatch(/^\//);
  });

  it('carries 20 MB of output whole', async () => {
    const { porter } = await podmanBox();
    const { stdout } = await runIn(porter, ['sh', '-c', 'yes | head -c 20000000']);
    expect(stdout).toBe('y\n'.repeat(10_000_000));
  });

  it('obeys the engine’s stop', async () => {
    const { id } = await podmanBox();
    await stopContainer(podman.connection, id, 10);
    expect(await waitForExit(podman.connection, id, { timeoutMs: 20_000 })).toBe(143);
  });

  it('goes on with a new host by the relay, though its stdin is dead for good', async () => {
    const box = await podmanBox();
    const script = 'i=0; while [ $i -lt 200000 ]; do echo line $i; i=$((i+1)); done; exit 9';
    const exec = box.porter.exec(
      { argv: ['sh', '-c', script], env, cwd: '/' },
      queueSink(new OutputQueue(), new OutputQueue()),
    );
    await exec.started;
    box.door.destroy();
    const porter = await takeOver(podman.connection, box, 2);
    const [known] = await porter.list();
    if (known === undefined) throw new Error('porter has forgotten its exec');
    const stdout = new OutputQueue();
    const from = { stdout: known.stdout.first, stderr: 0 };
    const resumed = porter.resume(known, from, queueSink(stdout, new OutputQueue()));
    const [text, result] = await Promise.all([collect(stdout), resumed.result]);
    const expected = Array.from({ length: 200_000 }, (_, index) => `line ${index}\n`).join('');
    expect(text).toBe(expected.slice(from.stdout));
    expect(result).toMatchObject({ exitCode: 9, stdoutBytes: expected.length });
  });
});
