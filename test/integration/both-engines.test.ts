/**
 * What a sandbox is, whichever engine makes it: the same tests on Docker and on bubblewrap. What only one of them can do is in
 * the files of that one.
 */

import { chmod, chown, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createBody } from '../../src/protocol/requests.ts';
import { testDns } from '../support/dns-server.ts';
import { enginesUnderTest } from '../support/engine-under-test.ts';
import { entrances, helloServer, openFor, tryAll } from '../support/gate-box.ts';
import { commandExists, isRoot, requirement } from '../support/requires.ts';
import { openSandboxes, runInSandbox, startInSandbox } from '../support/sandboxes.ts';
import { asRoot, type Part, when } from '../support/selection.ts';

const hasBubblewrap = requirement('bubblewrap', commandExists('bwrap'));
const engines = enginesUnderTest.filter((name) => name === 'docker' || hasBubblewrap);

/** An ordinary user's, whoever runs the test. */
async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'sallyport-both-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  await chmod(path, 0o755);
  if (isRoot) await chown(path, 1234, 1234);
  return path;
}

describe.each(engines)('on %s', (on) => {
  /** Without a control group nobody can be held still. */
  const canPause: Part = on === 'docker' ? { ...asRoot, isSelected: true } : asRoot;

  test('[A15] a command runs, with its output, its exit code and its environment', async () => {
    const { make, reports } = await openSandboxes({ on });
    const box = await make({ spec: { envs: { GREETING: 'hello' } } });
    const { exec, stdout, stderr } = await runInSandbox(box, [
      'sh',
      '-c',
      'echo $GREETING $(whoami) ~; echo bad >&2; exit 3',
    ]);
    expect(exec).toMatchObject({ state: 'exited', exit_code: 3, oom_killed: false });
    expect(stdout.data).toBe('hello sally /home/sally\n');
    expect(stderr.data).toBe('bad\n');
    expect(box.view().isolation.engine).toBe(on);
    await box.remove({ force: false });
    expect(reports).toEqual([]);
  });

  test('[A11] a command is told the uid and gid of the host, unless the sandbox or the call names others', async () => {
    const { make } = await openSandboxes({ on });
    const argv = ['sh', '-c', 'echo $HOST_UID:$HOST_GID'];
    const host = `${process.getuid?.()}:${process.getgid?.()}\n`;
    expect((await runInSandbox(await make(), argv)).stdout.data).toBe(host);
    const named = await make({ spec: { envs: { HOST_UID: '7' } } });
    expect((await runInSandbox(named, argv)).stdout.data).toBe(`7:${process.getgid?.()}\n`);
    const called = await runInSandbox(named, argv, { envs: { HOST_UID: '8', HOST_GID: '' } });
    expect(called.stdout.data).toBe('8:\n');
    await named.stop(1000);
    await named.start();
    expect((await runInSandbox(named, argv)).stdout.data).toBe(`7:${process.getgid?.()}\n`);
  });

  // bubblewrap of an ordinary user has no control groups, so it cannot hold the strict profile.
  when(canPause).test('[A11][C5] the strict profile is told no number of the host', async () => {
    const { make } = await openSandboxes({ on });
    const box = await make({ spec: { profile: 'strict' } });
    const { stdout } = await runInSandbox(box, ['env']);
    expect(stdout.data).toContain('HOME=/tmp');
    expect(stdout.data).not.toContain('HOST_');
  });

  test('[C2] what is in force is as it was asked for, read from inside', async () => {
    const { make } = await openSandboxes({ on });
    const { ok, checks } = await (await make({ spec: { egress: {} } })).verify();
    expect(checks.filter(({ status }) => status === 'failed')).toEqual([]);
    expect(ok).toBe(true);
    const known = checks.filter(({ status }) => status === 'ok').map(({ name }) => name);
    const always = [
      'user',
      'capabilities bnd',
      'no new privileges',
      'seccomp',
      'core files',
      'interfaces',
      'root',
    ];
    expect(known).toEqual(expect.arrayContaining(always));
    if (canPause.isSelected) expect(known).toEqual(expect.arrayContaining(['memory', 'processes', 'cpus']));
  });

  test('[G5] a command ends at its deadline with all that it started', async () => {
    const { make } = await openSandboxes({ on });
    const box = await make();
    const { exec } = await runInSandbox(box, ['sh', '-c', '(setsid sleep 100 &) ; sleep 100'], {
      timeout_ms: 200,
      grace_ms: 100,
    });
    expect(exec).toMatchObject({ timed_out: true });
    const left = await runInSandbox(box, ['sh', '-c', 'cat /proc/[0-9]*/comm | grep -c "^sleep"']);
    expect(left.stdout.data).toBe('0\n');
  });

  test('[G7] it stops, starts with what it had, and is removed once and for all', async () => {
    const { make, world, reports } = await openSandboxes({ on });
    const box = await make();
    await (await box.files()).write('/home/sally/file', Buffer.from('kept\n'));
    await box.stop(1000);
    expect(box.state).toBe('STOPPED');
    await expect(startInSandbox(box, ['true'])).rejects.toMatchObject({ code: 'sandbox_state' });
    await box.start();
    expect((await runInSandbox(box, ['cat', '/home/sally/file'])).stdout.data).toBe('kept\n');
    await box.remove({ force: false });
    expect(await world.engine.list(world.owner)).toEqual([]);
    expect(reports).toEqual([]);
  });

  when(canPause).test('it is paused and goes on', async () => {
    const { make } = await openSandboxes({ on });
    const box = await make();
    await box.pause();
    expect(box.state).toBe('PAUSED');
    await expect(startInSandbox(box, ['true'])).rejects.toMatchObject({ code: 'sandbox_state' });
    await box.resume();
    expect((await runInSandbox(box, ['echo', 'on'])).stdout.data).toBe('on\n');
    await box.pause();
    await box.remove({ force: true });
    expect(box.state).toBe('DELETED');
  });

  when(canPause).test('[G5] a death for want of memory is told from any other kill', async () => {
    const { make } = await openSandboxes({ on });
    const box = await make({ spec: { limits: { memory: '64m' } } });
    const eaten = await runInSandbox(box, ['tail', '/dev/zero']);
    expect(eaten.exec).toMatchObject({ oom_killed: true });
    const killed = await runInSandbox(box, ['sh', '-c', 'kill -9 $$']);
    expect(killed.exec).toMatchObject({ oom_killed: false, signal: 'SIGKILL' });
  });

  test('the number of its processes is limited', async () => {
    const { make } = await openSandboxes({ on });
    const box = await make({ spec: { limits: { pids: 40 } } });
    const { stdout } = await runInSandbox(box, [
      'sh',
      '-c',
      'for i in $(seq 80); do sleep 60 & done 2>/dev/null; echo unreached',
    ]);
    expect(stdout.data).toBe('');
    const { pids } = await box.stats();
    expect(pids).toBeLessThanOrEqual(40);
  });

  test('[A16] its daemon ends, and the next one goes on with a command of which nothing is lost', async () => {
    const first = await openSandboxes({ on });
    const box = await first.make({ spec: { name: 'stays' } });
    const exec = await startInSandbox(
      box,
      ['sh', '-c', 'echo before; while [ ! -e ~/go ]; do sleep 0.05; done; echo after; exit 5'],
      { background: true },
    );
    await first.abandon();
    const second = await openSandboxes({ on, stateDir: first.stateDir });
    const again = second.sandboxes.get('stays');
    expect(again.state).toBe('READY');
    await (await again.files()).write('/home/sally/go', Buffer.from(''));
    const known = again.getExec(exec.id);
    const { exec: view, stdout } = await known.result();
    expect(view).toMatchObject({ state: 'exited', exit_code: 5 });
    expect(stdout.data).toBe('before\nafter\n');
  });

  test('[A12] what a lost store knew is found again by its labels', async () => {
    const first = await openSandboxes({ on });
    await (await first.make({ spec: { name: 'lost', envs: { A: 'b' } } })).files();
    await first.abandon();
    await rm(join(first.stateDir, 'sandboxes'), { recursive: true });
    const second = await openSandboxes({ on, stateDir: first.stateDir });
    const found = second.sandboxes.get('lost');
    expect(found.state).toBe('STOPPED');
    await found.start();
    expect((await runInSandbox(found, ['echo', 'on'])).stdout.data).toBe('on\n');
  });

  test('[A11] a live workspace is the folder itself, with what the host would execute held read-only', async () => {
    const { make } = await openSandboxes({ on });
    const path = await folder();
    const box = await make({ spec: { workspace: { path } } });
    const { stdout, exec } = await runInSandbox(box, [
      'sh',
      '-c',
      'pwd; echo made > file; mkdir .git/hooks; echo x > .vscode/tasks.json; exit 0',
    ]);
    expect(exec.exit_code).toBe(0);
    expect(stdout.data).toBe('/workspace\n');
    expect(await readFile(join(path, 'file'), 'utf8')).toBe('made\n');
    expect((await stat(join(path, 'file'))).uid).toBe(isRoot ? 1234 : process.getuid?.());
    await box.stop(0);
    await expect(stat(join(path, '.vscode'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('[O8] a readonly workspace can be read and not written', async () => {
    const { make } = await openSandboxes({ on });
    const path = await folder();
    await writeFile(join(path, 'file'), 'there');
    const box = await make({ spec: { workspace: { path, mode: 'readonly' } } });
    const { exec, stdout } = await runInSandbox(box, ['sh', '-c', 'cat file; touch other']);
    expect(stdout.data).toBe('there');
    expect(exec.exit_code).not.toBe(0);
  });

  test('[A5] a copy leaves the folder alone, survives a stop, and tells what changed', async () => {
    const { make } = await openSandboxes({ on });
    const path = await folder();
    await writeFile(join(path, 'file'), 'there');
    const box = await make({ spec: { workspace: { path, mode: 'copy' } } });
    await runInSandbox(box, ['sh', '-c', 'echo more >> file; echo new > other']);
    await box.stop(1000);
    await box.start();
    const { changes } = await box.changes();
    expect(changes.map(({ path: changed }) => String(changed)).sort()).toEqual(['file', 'other']);
    expect(await readFile(join(path, 'file'), 'utf8')).toBe('there');
  });

  test('[R6] egress passes the gate by every entrance, and nothing else leaves', async () => {
    const { port, seen } = await helloServer();
    const dns = await testDns({ 'good.test': ['127.0.0.1'], 'evil.test': ['127.0.0.1'] });
    const { make } = await openSandboxes({ on, dnsServers: [dns.server] });
    const box = await make({ spec: { egress: { allow: openFor(port, 'good.test') ?? [] } } });
    const attempts = entrances.flatMap((via) =>
      ['good.test', 'evil.test'].map((host) => ({ via, host, port })),
    );
    const results = await tryAll(box, attempts);
    for (const [index, { host, via }] of attempts.entries()) {
      const reached = results[index]?.what === 'reached';
      expect(reached, `${via} ${host}: ${results[index]?.what}`).toBe(host === 'good.test');
    }
    expect(seen.every((line) => line.includes('good.test'))).toBe(true);
    expect(dns.asked).not.toContain('evil.test');
    const direct = await runInSandbox(box, ['python3', '-c', directly(port)]);
    expect(direct.stdout.data).toBe('ConnectionRefusedError OSError\n');
  });

  test('a name is given once, and one that is removed while it is made leaves nothing', async () => {
    const { sandboxes, make, world } = await openSandboxes({ on });
    const { image } = (await make({ spec: { name: 'twin' } })).record.spec;
    const body = createBody.parse({ spec: { name: 'twin', ...(image === undefined ? {} : { image }) } });
    await expect(sandboxes.create(body)).rejects.toMatchObject({ code: 'sandbox_exists' });
    const other = await sandboxes.create({ ...body, spec: { ...body.spec, name: 'other' } });
    await Promise.all([other.remove({ force: false }), other.ready().catch(() => {})]);
    expect(other.state).toBe('DELETED');
    expect((await world.engine.list(world.owner)).length).toBe(1);
  });
});

/** To a server of the host's on the loopback, which is another one inside, and to an address outside. */
const directly = (port: number): string => `
import socket
def reach(host, port):
    try:
        socket.create_connection((host, port), 5)
        return 'reached'
    except OSError as error:
        return type(error).__name__
print(reach('127.0.0.1', ${port}), reach('192.0.2.1', 80))
`;
