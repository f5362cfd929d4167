/** The user's SSH agent in a sandbox: a real agent with a key of the test's own, and OpenSSH's programs inside. */

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { newFolder } from '../support/cli.ts';
import { onDocker } from '../support/engine-under-test.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { openSandboxes, runInSandbox as runExec, type TestSandboxes } from '../support/sandboxes.ts';
import { asRoot, dockerAlone, onGvisor, when } from '../support/selection.ts';
import { testAgent } from '../support/ssh-agent.ts';

const place = '/tmp/.sallyport-ssh-agent';

/** How it ended and what it said. */
async function runInSandbox(
  sandbox: Sandbox,
  argv: readonly string[],
  more: Parameters<typeof runExec>[2] = {},
): Promise<{ readonly exitCode: number | undefined; readonly stdout: string; readonly stderr: string }> {
  const { exec, stdout, stderr } = await runExec(sandbox, argv, more);
  return { exitCode: exec.exit_code, stdout: stdout.data, stderr: stderr.data };
}

const makeWithAgent = ({ make }: TestSandboxes, spec: { readonly runtime?: string } = {}): Promise<Sandbox> =>
  make({ spec: { name: 'agent', builtin_tools: ['git'], ...spec } });

/**
 * OpenSSH's programs of this machine, with their libraries and the loader that belongs to them: the test image has none,
 * and may be of another release of Debian.
 */
async function bringPrograms(sandbox: Sandbox): Promise<Record<string, string>> {
  const files = await sandbox.files();
  const bring = async (path: string): Promise<string> => {
    const inside = `/tmp/ssh/lib/${basename(path)}`;
    await files.write(inside, await readFile(path), { mode: 0o755 });
    return inside;
  };
  await files.mkdir('/tmp/ssh/lib', { parents: true });
  for (const program of ['/usr/bin/ssh-add', '/usr/bin/ssh-keygen']) {
    const needed = execFileSync('ldd', [program], { encoding: 'utf8' });
    for (const [, library = ''] of needed.matchAll(/=> (\/\S+)/g)) await bring(library);
    const loader = await bring(/^\s*(\/\S+)/m.exec(needed)?.[1] ?? '');
    const line = `exec ${loader} --library-path /tmp/ssh/lib ${await bring(program)} "$@"`;
    await files.write(`/tmp/ssh/${basename(program)}`, Buffer.from(`#!/bin/sh\n${line}\n`), { mode: 0o755 });
  }
  return { PATH: '/tmp/ssh:/usr/bin:/bin' };
}

/** What was said of the agent so far. */
async function notes({ world }: TestSandboxes): Promise<readonly string[]> {
  const { events } = world.store;
  const stop = new AbortController();
  const said: string[] = [];
  events.append({ type: 'sandbox.note', sandbox_id: 'sb_test', code: 'test', message: 'up to here' });
  for await (const event of events.follow(0, stop.signal)) {
    if (event.sequence === events.sequence) break;
    if (event.type === 'sandbox.note' && event.code.startsWith('ssh_agent')) said.push(event.message);
  }
  return said;
}

describe('[A6] the SSH agent', () => {
  it('lists its keys and signs inside, and takes no orders; the key itself is not there', async () => {
    const { socket, start, fingerprint, folder } = await testAgent();
    await start();
    const all = await openSandboxes({ sshAgentPath: socket });
    const sandbox = await makeWithAgent(all);
    const envs = await bringPrograms(sandbox);
    const listed = await runInSandbox(sandbox, ['ssh-add', '-l'], { envs });
    expect(listed).toMatchObject({ exitCode: 0 });
    expect(listed.stdout).toContain(fingerprint);
    const files = await sandbox.files();
    await files.write('/tmp/key.pub', await readFile(join(folder, 'key.pub')));
    await files.write('/tmp/message', Buffer.from('signed inside'));
    const signing = ['ssh-keygen', '-Y', 'sign', '-n', 'file', '-f', '/tmp/key.pub', '/tmp/message'];
    expect(await runInSandbox(sandbox, signing, { envs })).toMatchObject({ exitCode: 0 });
    await writeFile(join(folder, 'signature'), await files.readAll('/tmp/message.sig', 10_000));
    await writeFile(join(folder, 'allowed'), `me ${await readFile(join(folder, 'key.pub'), 'utf8')}`);
    const verify = [
      '-Y',
      'verify',
      '-n',
      'file',
      '-I',
      'me',
      '-f',
      join(folder, 'allowed'),
      '-s',
      join(folder, 'signature'),
    ];
    expect(execFileSync('ssh-keygen', verify, { input: 'signed inside', encoding: 'utf8' })).toContain(
      'Good "file"',
    );
    // Orders are refused, and the agent still has its key.
    for (const order of [['-D'], ['-d', '/tmp/key.pub']]) {
      const refused = await runInSandbox(sandbox, ['ssh-add', ...order], { envs, stdin: false });
      expect(refused.exitCode, order.join()).not.toBe(0);
    }
    expect((await runInSandbox(sandbox, ['ssh-add', '-l'], { envs })).stdout).toContain(fingerprint);
    const onHost = { env: { ...process.env, SSH_AUTH_SOCK: socket }, stdio: 'ignore' as const };
    execFileSync('ssh-add', ['-D'], onHost);
    expect((await runInSandbox(sandbox, ['ssh-add', '-l'], { envs })).stdout).not.toContain(fingerprint);
    const secret = (await readFile(join(folder, 'key'), 'utf8')).split('\n')[2] ?? '';
    const search = ['grep', '-rlsF', secret, '/tmp', '/home', '/etc', '/run', '/var', '/proc/self/environ'];
    expect(await runInSandbox(sandbox, search)).toMatchObject({ stdout: '' });
    const facts = await runInSandbox(sandbox, ['sh', '-c', `stat -c '%F %a' ${place}; echo $SSH_AUTH_SOCK`]);
    expect(facts.stdout).toBe(`socket 600\n${place}\n`);
    const row = (await sandbox.verify()).checks.find(({ name }) => name.startsWith('SSH agent'));
    expect(row).toMatchObject({ status: 'ok', found: 'listening' });
    expect(await notes(all)).toEqual([]);
  }, 60_000);

  it('is there after a restart of the daemon, of the sandbox, and of itself; its absence is told once', async () => {
    const { socket, start, fingerprint } = await testAgent();
    const first = await openSandboxes({ sshAgentPath: socket });
    const sandbox = await makeWithAgent(first);
    const ask = async (box: Sandbox, envs: Record<string, string>): Promise<string> =>
      (await runInSandbox(box, ['ssh-add', '-l'], { envs })).stdout;
    let envs = await bringPrograms(sandbox);
    // Not there yet: told at the start, and no more for each who asks.
    expect(await ask(sandbox, envs)).not.toContain(fingerprint);
    expect(await ask(sandbox, envs)).not.toContain(fingerprint);
    expect(await notes(first)).toEqual([`the SSH agent is not forwarded: there is nothing at ${socket}`]);
    const running = await start();
    expect(await ask(sandbox, envs)).toContain(fingerprint);
    expect(await notes(first)).toHaveLength(2);
    await sandbox.stop(1000);
    await sandbox.start();
    envs = await bringPrograms(sandbox);
    expect(await ask(sandbox, envs)).toContain(fingerprint);
    sandbox.letGo();
    await first.abandon();
    const second = await openSandboxes({ sshAgentPath: socket, stateDir: first.stateDir });
    const again = second.sandboxes.get('agent');
    await again.ready();
    expect(await ask(again, envs)).toContain(fingerprint);
    running.kill('SIGKILL');
    await once(running, 'exit');
    expect(await ask(again, envs)).not.toContain(fingerprint);
    await rm(socket, { force: true });
    await start();
    expect(await ask(again, envs)).toContain(fingerprint);
  }, 60_000);

  when(dockerAlone, onGvisor, requirement('gVisor (runsc)', commandExists('runsc'))).it(
    'is there under gVisor',
    async () => {
      const { socket, start } = await testAgent();
      await start();
      const sandbox = await makeWithAgent(await openSandboxes({ sshAgentPath: socket }), {
        runtime: 'runsc',
      });
      const ask = `import os, socket; s = socket.socket(socket.AF_UNIX); s.connect(os.environ['SSH_AUTH_SOCK'])
s.sendall(bytes([0, 0, 0, 1, 11])); print(s.recv(4096))`;
      expect((await runInSandbox(sandbox, ['python3', '-c', ask])).stdout).toContain('of the test');
      const row = (await sandbox.verify()).checks.find(({ name }) => name.startsWith('SSH agent'));
      expect(row?.status).not.toBe('failed');
    },
    60_000,
  );

  it.each(['a link', 'no socket'])('is not used where SSH_AUTH_SOCK is %s', async (what) => {
    const { folder, socket, start, fingerprint } = await testAgent();
    await start();
    const other = join(folder, 'other');
    if (what === 'a link') await symlink(socket, other);
    else await mkdir(other);
    const all = await openSandboxes({ sshAgentPath: other });
    const sandbox = await makeWithAgent(all);
    const envs = await bringPrograms(sandbox);
    expect((await runInSandbox(sandbox, ['ssh-add', '-l'], { envs })).stdout).not.toContain(fingerprint);
    expect(await notes(all)).toEqual([`the SSH agent is not forwarded: ${other} is ${what}`]);
  });

  when(asRoot).it('is not used where it belongs to another user', async () => {
    const { socket, start, fingerprint } = await testAgent();
    await start();
    await chown(socket, 1000, 1000);
    const all = await openSandboxes({ sshAgentPath: socket });
    const sandbox = await makeWithAgent(all);
    const envs = await bringPrograms(sandbox);
    expect((await runInSandbox(sandbox, ['ssh-add', '-l'], { envs })).stdout).not.toContain(fingerprint);
    await chown(socket, 0, 0);
    expect((await runInSandbox(sandbox, ['ssh-add', '-l'], { envs })).stdout).toContain(fingerprint);
  });

  it('has at most 32 connections of a sandbox, each with its own end, and outlives the move to a relay', async () => {
    const folder = await newFolder('own');
    const socket = join(folder, 'agent');
    let [open, most] = [0, 0];
    // Answers each whole request with itself, and ends after whoever asks has ended.
    const server = createServer({ allowHalfOpen: true }, (peer) => {
      most = Math.max(most, ++open);
      peer.on('close', () => open--);
      peer.on('error', () => {});
      peer.pipe(peer);
    });
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    onTestFinished(() => void server.close());
    const all = await openSandboxes({ sshAgentPath: socket });
    const sandbox = await makeWithAgent(all);
    const program = `
import os, socket
ask = bytes([0, 0, 0, 1, 11])
def answer(s):
    got = b''
    while len(got) < 5:
        more = s.recv(5 - len(got))
        if more == b'': return got
        got += more
    return got
held = []
refused = 0
for _ in range(40):
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ['SSH_AUTH_SOCK'])
    try:
        s.sendall(ask)
        ok = answer(s) == ask
    except OSError: ok = False
    if ok: held.append(s)
    else: refused += 1
print(len(held), refused)
for s in held:
    s.shutdown(socket.SHUT_WR)
    assert s.recv(1) == b''
print('ended')
`;
    const result = await runInSandbox(sandbox, ['python3', '-c', program]);
    expect(result).toMatchObject({ stdout: '32 8\nended\n', stderr: '' });
    expect(most).toBe(32);
    // The first connection to porter is the attached stream, the second a relay: a listener alone does not hold it back. On
    // bubblewrap there is nothing to move away from.
    await expect.poll(() => sandbox.record.epoch, { timeout: 20_000 }).toBe(onDocker ? 2 : 1);
    const after = await runInSandbox(sandbox, ['python3', '-c', program.replace('range(40)', 'range(1)')]);
    expect(after).toMatchObject({ stdout: '1 0\nended\n' });
  }, 60_000);
});
