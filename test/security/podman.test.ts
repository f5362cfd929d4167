/**
 * [R11] Attacks on the boundary of a sandbox on Podman: by programs on porter, on the kernel, on a live workspace and on its owner. Each
 * act is also done where it is allowed.
 */

import { execFileSync } from 'node:child_process';
import { chownSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { testEngine } from '../support/engine.ts';
import {
  allowedCalls,
  EACCES,
  EBADF,
  EPERM,
  perhapsRefusedByTheEngine,
  probe,
  putProbe,
  readFindings,
  refusedCalls,
  startedByEngine,
} from '../support/kernel-probe.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import {
  allQuotas,
  EMFILE,
  folderOfPerson,
  hoardOutside,
  readQuotas,
  tryOutside,
} from '../support/person-quotas.ts';
import { copyImage, type PodmanService, startPodman } from '../support/podman.ts';
import { runIn } from '../support/porter-child.ts';
import { allActs, everyAct, inLooseContainer, probeFolder, verdicts } from '../support/privileged-acts.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { openBox, openRelay } from '../support/runtime-box.ts';
import { openSandboxes, runInSandbox } from '../support/sandboxes.ts';
import { asRoot, when } from '../support/selection.ts';
import { expectNoSetId, modeOf, owner, probeWorkspace } from '../support/set-id-modes.ts';
import { until } from '../support/until.ts';

/** Of nobody else on this machine. */
const person = 64_813;
const refusals = [EPERM, EACCES];

when(asRoot, requirement('Podman', commandExists('podman'))).describe('[R11] attacks on Podman', () => {
  let podman: PodmanService;

  beforeAll(async () => {
    const { connection, image } = testEngine();
    podman = await startPodman();
    await copyImage(connection, podman.connection, image);
  });
  afterAll(async () => {
    await podman?.stop();
  });

  async function boxWithProbe() {
    const { image, labels } = testEngine();
    const box = await openBox({ connection: podman.connection, image, labels: labels() });
    await putProbe(box.porter);
    return box;
  }
  const open = () => openSandboxes({ connection: podman.connection });

  it('a program can do nothing to porter and its relay that it can do to its own child', async () => {
    const { porter, id } = await boxWithProbe();
    const onChild = await probe(porter, 'child');
    expect(Object.keys(onChild).length).toBeGreaterThan(20);
    const { 'read-memory': readMemory, ...others } = onChild;
    expect(perhapsRefusedByTheEngine).toContain(readMemory);
    expect(others).toEqual(Object.fromEntries(Object.keys(others).map((name) => [name, 0])));

    const onPorter = await probe(porter, '1');
    expect(Object.keys(onPorter)).toEqual(Object.keys(onChild));
    for (const [name, errno] of Object.entries(onPorter))
      expect(name === 'oom-score' ? [EBADF] : refusals, name).toContain(errno);

    await openRelay(podman.connection, id);
    let found = '';
    await until(async () => {
      const script = `${startedByEngine} && /tmp/probe $found`;
      found = (await runIn(porter, ['bash', '-c', script])).stdout;
      return found !== '';
    });
    // The kernel lets everybody name a receiver of signals, and sends none that its sender may not send himself.
    const { 'owner-of-signals': _, 'oom-score': score, ...onRelay } = readFindings(found);
    expect(score).toBe(EBADF);
    expect(Object.keys(onRelay)).toHaveLength(Object.keys(onChild).length - 2);
    for (const [name, errno] of Object.entries(onRelay)) expect(refusals, name).toContain(errno);
  });

  it('a program gets ordinary sockets and calls, and none that lead elsewhere', async () => {
    const { porter } = await boxWithProbe();
    // The control of the refusals: test/security/porter-boundary.test.ts makes the same calls outside, where they work.
    expect(await probe(porter, 'calls', '/tmp')).toEqual({ ...refusedCalls, ...allowedCalls });
  });

  it('[A11] no privileged act works, in either profile; all of them work in a privileged container', async () => {
    const { make } = await open();
    const source = probeFolder();
    const mounts = [{ source, target: '/probe' }];
    const { connection } = podman;
    const loose = await inLooseContainer(allActs, source, { connection, hostConfig: { Privileged: true } });
    expect(verdicts(loose)).toEqual(everyAct('done'));
    for (const profile of ['standard', 'strict'] as const) {
      const box = await make({ spec: { profile, mounts } });
      const { stdout } = await runInSandbox(box, ['sh', '-c', allActs]);
      expect(verdicts(stdout.data), profile).toEqual(everyAct('refused'));
    }
  });

  it('no set-id bit can be made in a live workspace, and other modes can', async () => {
    const folder = probeWorkspace();
    const box = await (await open()).make({ spec: { workspace: { path: folder } } });
    await expectNoSetId(folder, async (mode) => {
      const { stdout } = await runInSandbox(box, ['./probe', 'modes', '.', mode]);
      return stdout.data;
    });
    const files = await box.files();
    await files.write('/workspace/file', Buffer.from('x'));
    await expect(files.chmod('/workspace/file', 0o4755)).rejects.toMatchObject({ code: 'file_denied' });
    await files.chmod('/workspace/file', 0o1755);
    expect(modeOf(join(folder, 'file'))).toBe(0o1755);
  });

  it('[A2][N5] git on the host runs nothing that was planted, and a scan finds the rest; without protection git does', async () => {
    const { make } = await open();
    const trial = async (more: Record<string, unknown>) => {
      const folder = ownedFolder();
      git(folder, 'init', '--quiet');
      const ran = ownedFolder();
      const box = await make({ spec: { workspace: { path: folder, ...more } } });
      const before = await box.scan();
      await runInSandbox(box, ['sh', '-c', planting(ran)]);
      const scan = await box.scan();
      git(folder, 'status');
      git(folder, 'commit', '--quiet', '--allow-empty', '--message=first');
      await box.stop(0);
      const names = ['config', 'hook', 'envrc'] as const;
      const done = names.map(
        (name) => [name, existsSync(join(name === 'envrc' ? folder : ran, marks[name]))] as const,
      );
      return { ...Object.fromEntries(done), before: before?.planted, found: scan?.planted };
    };
    const found = [{ path: 'sub', kind: 'git directory', how: 'new' }];
    const none = { config: false, hook: false, envrc: false };
    expect(await trial({})).toMatchObject({ ...none, before: [], found });
    const unprotected = { dangerously_unprotected: ['all'] };
    expect(await trial(unprotected)).toEqual({ config: true, hook: true, envrc: true });
  });

  it('[N22] a sandbox of a person leaves the person inotify and epoll, whatever it takes', async () => {
    const folder = folderOfPerson(person);
    const box = await (await open()).make({ spec: { workspace: { path: folder } } });
    expect(box.view().user.uid).toBe(person);
    // It goes on in the background with all that it got.
    const hoarding = './quotas hoard instances /tmp >/tmp/got & until [ -s /tmp/got ]; do :; done';
    const script = `${hoarding}; cat /tmp/got; ./quotas try /tmp`;
    const [got = '', ...tried] = (await runInSandbox(box, ['sh', '-c', script])).stdout.data.split('\n');
    expect(Number(got.split(' ')[0])).toBeGreaterThan(10);
    expect(readQuotas(tried.join('\n'))).toMatchObject({ instance: EMFILE });
    expect(tryOutside(person, folder)).toEqual(allQuotas);
    // The same program outside of any sandbox.
    await hoardOutside(person, folder, 'instances');
    expect(tryOutside(person, folder)).toMatchObject({ instance: EMFILE });
  });
});

const marks = { config: 'config', hook: 'hook', envrc: '.envrc' } as const;
const planting = (ran: string): string =>
  [
    `printf '[core]\\n fsmonitor = touch ${ran}/${marks.config}\\n' >> .git/config`,
    `printf '#!/bin/sh\\ntouch ${ran}/${marks.hook}\\n' > .git/hooks/pre-commit`,
    'chmod 755 .git/hooks/pre-commit',
    `echo x > ${marks.envrc}`,
    'mkdir -p sub/objects sub/refs && echo x > sub/HEAD',
  ].join('\n');

function ownedFolder(): string {
  const folder = temporaryFolder();
  chownSync(folder, owner, owner);
  return folder;
}

/** The machine's own git, as the owner of the folder would use it. */
function git(folder: string, ...args: readonly string[]): void {
  const env = { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' };
  const who = ['-c', 'user.name=Host', '-c', 'user.email=host@example.invalid'];
  execFileSync('git', [...who, ...args], { cwd: folder, env, stdio: 'pipe', uid: owner, gid: owner });
}
