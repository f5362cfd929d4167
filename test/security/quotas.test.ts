/**
 * What the kernel counts by uid, and a sandbox with a live workspace has the uid of a person: a sandbox that takes all it can leaves the
 * person, and another sandbox of the same uid, what they need.
 */

import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { ExecProcess } from '../../src/sdk/exec-process.ts';
import { type CreateOptions, Sandbox } from '../../src/sdk/sandbox.ts';
import { type DaemonHome, daemonHome, type TestDaemon } from '../support/daemon-home.ts';
import { makeSandbox } from '../support/daemon-world.ts';
import {
  allQuotas,
  EMFILE,
  folderOfPerson,
  hoardOutside,
  readQuotas,
  tryOutside,
  wholePipe,
} from '../support/person-quotas.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { openSandboxes, runInSandbox } from '../support/sandboxes.ts';
import { asRoot, dockerAlone, fullSizes, isSelected, onGvisor, when } from '../support/selection.ts';
import { until } from '../support/until.ts';

/** Of nobody else on this machine. */
const person = 64_811;

const hasGvisor =
  isSelected(dockerAlone, 'the same on gVisor') &&
  isSelected(onGvisor, 'the same on gVisor') &&
  requirement('gVisor (runsc)', commandExists('runsc'));

const hasBubblewrap = requirement('bubblewrap', commandExists('bwrap'));

async function tryInside(box: Sandbox): Promise<Readonly<Record<string, number>>> {
  return readQuotas((await box.exec(['/workspace/quotas', 'try', '/tmp'])).stdout);
}

/** How many it got. It keeps them until it is disposed of. */
async function hoard(box: Sandbox, what: string): Promise<{ count: number; process: ExecProcess }> {
  const process = await box.spawn(['/workspace/quotas', 'hoard', what, '/tmp'], { background: true });
  for await (const chunk of process.stdout) return { count: Number(chunk.toString().split(' ')[0]), process };
  throw new Error('it said nothing');
}

interface Scene {
  readonly home: DaemonHome;
  readonly daemon: TestDaemon;
  readonly folder: string;
  readonly make: (more?: CreateOptions) => Promise<Sandbox>;
}

async function scene(): Promise<Scene> {
  const home = await daemonHome();
  const daemon = await home.start();
  const folder = folderOfPerson(person);
  let count = 0;
  const make = (more: CreateOptions = {}) =>
    makeSandbox(daemon, { name: `live-${++count}`, workspace: { path: folder }, ...more });
  return { home, daemon, folder, make };
}

when(asRoot).describe('[N22] a sandbox that runs as a person', () => {
  const it = when(asRoot, dockerAlone).it;

  it('leaves the person inotify, signals and message queues, whatever it takes', async () => {
    const { folder, make } = await scene();
    const box = await make();
    expect(box.info.user.uid).toBe(person);
    expect((await hoard(box, 'instances')).count).toBeGreaterThan(10);
    expect(tryOutside(person, folder)).toEqual(allQuotas);
    // It has taken all that it gets.
    expect(await tryInside(box)).toMatchObject({ instance: EMFILE });
    for (const what of ['signals', 'queues']) expect((await hoard(box, what)).count).toBeGreaterThan(1);
    expect(tryOutside(person, folder)).toEqual(allQuotas);
    // The same program outside of any sandbox.
    await hoardOutside(person, folder, 'instances');
    expect(tryOutside(person, folder)).toMatchObject({ instance: EMFILE });
  });

  it('leaves another sandbox of the person epoll and inotify', async () => {
    const { make } = await scene();
    const [taker, other] = [await make(), await make()];
    expect((await hoard(taker, 'instances')).count).toBeGreaterThan(10);
    expect(await tryInside(other)).toMatchObject({ instance: 0, watch: 0, epoll: 0 });
    expect((await hoard(other, 'instances')).count).toBeGreaterThan(10);
    const row = (await other.verify()).checks.find(({ name }) => name === 'epoll and inotify quotas');
    expect(row).toMatchObject({ status: 'ok', found: expect.stringMatching(/^of uid 64\d{3}$/) });
    // Each has a uid of its own for this, which no program inside has.
    const lender = async (box: Sandbox): Promise<string> =>
      (await box.sh('grep -l porter-lend /proc/[0-9]*/comm | xargs dirname | xargs -I {} grep Uid {}/status'))
        .stdout;
    expect(await lender(taker)).toMatch(/^Uid:\t64\d{3}\t/);
    expect(await lender(taker)).not.toBe(await lender(other));
    const killed = await taker.sh(
      'cd /proc; for each in [0-9]*; do [ "$(cat $each/comm)" = porter-lend ] && kill -9 $each; done',
    );
    expect(killed.stderr).toContain('not permitted');
    expect(await lender(taker)).toMatch(/^Uid:\t64\d{3}\t/);
  });

  it('still has its own after the daemon was killed, and after a stop', async () => {
    const { home, daemon, folder, make } = await scene();
    const box = await make();
    expect(await tryInside(box)).toMatchObject({ instance: 0, epoll: 0 });
    const script = 'until [ -e go ]; do sleep 0.05; done; ./quotas churn 50 >churning; mv churning churned';
    const waiting = await box.spawn(['sh', '-c', script], { background: true, timeoutMs: 0 });
    const killed = once(daemon.child, 'exit');
    daemon.child.kill('SIGKILL');
    await killed;
    waiting.disconnect();
    // With no daemon at all.
    writeFileSync(join(folder, 'go'), '');
    await until(() => existsSync(join(folder, 'churned')));
    expect(readFileSync(join(folder, 'churned'), 'utf8')).toBe('worked 50\n');
    const again = await Sandbox.connect(box.id, { client: (await home.start()).client });
    expect(await tryInside(again)).toMatchObject({ instance: 0, epoll: 0 });
    await again.stop();
    await again.start();
    expect(await tryInside(again)).toMatchObject({ instance: 0, epoll: 0 });
  });

  it('can make the pipes of the person small, and stop it from passing descriptors', async () => {
    // Known gaps (docs/limitations.md). When this fails they are closed.
    const { folder, make } = await scene();
    const box = await make();
    const pipes = await hoard(box, 'pipes');
    expect(tryOutside(person, folder)).toMatchObject({
      pipe: expect.not.closeTo(wholePipe),
      instance: 0,
      epoll: 0,
    });
    await pipes.process.kill();
    expect(tryOutside(person, folder)).toEqual(allQuotas);
    await hoard(box, 'rights');
    const ETOOMANYREFS = 109;
    expect(tryOutside(person, folder)).toMatchObject({ right: ETOOMANYREFS, instance: 0, epoll: 0 });
  });

  when(asRoot, dockerAlone, fullSizes).it(
    'leaves the person every inotify and epoll watch',
    { timeout: 600_000 },
    async () => {
      const { folder, make } = await scene();
      const box = await make();
      for (const what of ['watches', 'epoll']) {
        expect((await hoard(box, what)).count).toBeGreaterThan(1000);
        expect(tryOutside(person, folder)).toEqual(allQuotas);
      }
    },
  );

  when(asRoot, dockerAlone, hasGvisor).it('has a kernel of its own on gVisor', async () => {
    const { folder, make } = await scene();
    const box = await make({ runtime: 'runsc' });
    expect((await hoard(box, 'instances')).count).toBeGreaterThan(10);
    expect(tryOutside(person, folder)).toEqual(allQuotas);
  });

  when(asRoot, hasBubblewrap).it('gets a quarter of what the person may have on bubblewrap', async () => {
    const folder = folderOfPerson(person);
    const box = await (await openSandboxes({ on: 'bubblewrap' })).make({
      spec: { workspace: { path: folder } },
    });
    expect(box.view().user.uid).toBe(person);
    const most = Number(readFileSync('/proc/sys/fs/inotify/max_user_instances', 'utf8'));
    // It goes on in the background with all that it got.
    const hoarding = '/workspace/quotas hoard instances /tmp >/tmp/got & until [ -s /tmp/got ]; do :; done';
    const script = `${hoarding}; cat /tmp/got; /workspace/quotas try /tmp`;
    const [got = '', ...tried] = (await runInSandbox(box, ['sh', '-c', script])).stdout.data.split('\n');
    expect(got).toBe(`${Math.floor(most / 4)} ${EMFILE}`);
    expect(readQuotas(tried.join('\n'))).toMatchObject({ instance: EMFILE });
    for (const what of ['signals', 'queues']) {
      const taking = `/workspace/quotas hoard ${what} /tmp >/tmp/${what} & until [ -s /tmp/${what} ]; do :; done`;
      expect((await runInSandbox(box, ['sh', '-c', taking])).exec.exit_code).toBe(0);
    }
    expect(tryOutside(person, folder)).toEqual(allQuotas);
    expect(await hoardOutside(person, folder, 'instances')).toBe(most - Math.floor(most / 4));
  });
});
