/**
 * `git` over SSH inside a sandbox, against a real sshd: by the names of the gate, with no setting of any proxy, and with the keys of
 * an agent that stays outside.
 */

import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import type { SpecInput } from '../../src/protocol/spec.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { newFolder } from '../support/cli.ts';
import { testDns } from '../support/dns-server.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { openSandboxes, runInSandbox } from '../support/sandboxes.ts';
import { testAgent } from '../support/ssh-agent.ts';
import { makeKey, provideSsh, startPlainSshServer } from '../support/ssh-server.ts';

const { baseImage: base } = inject('engine');
const hasSsh = requirement('sshd and git', (await provideSsh()) && commandExists('git'));

const git = (...args: readonly string[]): string =>
  execFileSync('git', ['-c', 'user.name=host', '-c', 'user.email=host@test', ...args], { encoding: 'utf8' });

interface World {
  readonly port: number;
  readonly bare: string;
  /** What the host commits, for a fetch. */
  readonly commitOnHost: (message: string) => Promise<void>;
  readonly url: (host: string) => string;
  readonly make: (spec: SpecInput) => Promise<Sandbox>;
  readonly knownHosts: (key?: string) => Promise<string>;
  readonly denials: (box: Sandbox) => readonly string[];
  /** Of the first connections; a line is written when its connection is over. */
  readonly entrances: (box: Sandbox, count: number) => Promise<readonly string[]>;
  readonly user: string;
}

/** A repository behind sshd, two names that lead there, and sandboxes whose user has a key that it takes. */
async function openWorld(): Promise<World> {
  const agent = await testAgent();
  await agent.start();
  const folder = await newFolder('own');
  const bare = join(folder, 'repo.git');
  const work = join(folder, 'work');
  git('init', '-q', '--bare', '-b', 'trunk', bare);
  git('clone', '-q', bare, work);
  const commitOnHost = async (message: string): Promise<void> => {
    await writeFile(join(work, 'file'), message);
    git('-C', work, 'add', '.');
    git('-C', work, 'commit', '-qm', message);
    git('-C', work, 'push', '-q', 'origin', 'HEAD:trunk');
  };
  await commitOnHost('first');
  const { port, user, hostKey } = await startPlainSshServer(folder, [agent.publicKey]);
  const dns = await testDns({
    'git.test': ['127.0.0.1'],
    'web.test': ['127.0.0.1'],
    'evil.test': ['127.0.0.1'],
  });
  const { make } = await openSandboxes({ dnsServers: [dns.server], sshAgentPath: agent.socket });
  let files = 0;
  return {
    port,
    bare,
    commitOnHost,
    url: (host) => `ssh://${user}@${host}:${port}${bare}`,
    knownHosts: async (key = hostKey) => {
      const file = join(folder, `known_hosts${files++}`);
      await writeFile(file, ['git.test', 'web.test'].map((host) => `[${host}]:${port} ${key}\n`).join(''));
      return file;
    },
    make: (spec) => {
      const allow = [`git.test:${port}/tcp`, `web.test:${port}`, `127.0.0.1:${port}/tcp`];
      return make({ spec: { image: base ?? '', egress: { allow }, ...spec } });
    },
    user,
    entrances: async (box, count) => {
      const lines: string[] = [];
      const enough = new AbortController();
      for await (const { host, entrance } of box.netLog({ follow: true, signal: enough.signal })) {
        if (lines.push(`${host} ${entrance}`) === count) break;
      }
      enough.abort();
      return lines;
    },
    denials: (box) => box.net().denied.map(({ host, code }) => `${host} ${code}`),
  };
}

const knownHostsInside = '/home/sally/.ssh/known_hosts';

/** Without the variables that name the proxy: the name alone must do. */
async function say(box: Sandbox, script: string): Promise<{ code: number | undefined; out: string }> {
  const bare = 'env -i PATH="$PATH" HOME="$HOME" SSH_AUTH_SOCK="$SSH_AUTH_SOCK" sh -ec "$1" 2>&1';
  const { exec, stdout } = await runInSandbox(box, ['sh', '-c', bare, 'sh', script]);
  return { code: exec.exit_code, out: stdout.data };
}

describe.runIf(hasSsh)('[A6] git over SSH', () => {
  it('clones, fetches and pushes with the keys of the agent, through the gate and with no proxy setting', async () => {
    const { make, url, bare, commitOnHost, knownHosts, denials } = await openWorld();
    const box = await make({
      builtin_tools: ['git'],
      copies: [{ source: await knownHosts(), target: knownHostsInside }],
    });
    const work = `cd /tmp/work && git config user.name inside && git config user.email inside@test`;
    const cloned = await say(box, `git clone -q ${url('git.test')} /tmp/work && cat /tmp/work/file`);
    expect(cloned).toEqual({ code: 0, out: 'first' });
    const push = `${work} && echo inside > new && git add . && git commit -qm inside && git push -q origin HEAD:from-inside`;
    expect(await say(box, push)).toMatchObject({ code: 0 });
    expect(git('-C', bare, 'log', '--format=%an %s', 'from-inside')).toBe('inside inside\nhost first\n');
    await commitOnHost('second');
    const fetched = await say(box, `${work} && git fetch -q && git log -1 --format=%s origin/trunk`);
    expect(fetched).toEqual({ code: 0, out: 'second\n' });
    expect(denials(box)).toEqual([]);
  });

  it('ends at once, and says why, where a rule, the key of the host or the agent is missing', async () => {
    const { make, url, bare, knownHosts, denials } = await openWorld();
    const box = await make({
      builtin_tools: ['git'],
      copies: [{ source: await knownHosts(), target: knownHostsInside }],
    });
    // A connection that only waits would be cut off by this, with another exit code.
    const list = (host: string): string => `timeout 60 git ls-remote ${url(host)}`;
    const allowed = await say(box, list('git.test'));
    expect(allowed).toMatchObject({ code: 0, out: expect.stringContaining('refs/heads/trunk') });
    const denied = await say(box, list('evil.test'));
    expect(denied).toMatchObject({
      code: 128,
      out: expect.stringMatching(/not_allowed.*sally net allow .* evil\.test/),
    });
    // A rule for HTTP and TLS lets no other bytes through.
    expect(await say(box, list('web.test'))).toMatchObject({ code: 128 });
    expect(denials(box)).toContainEqual('web.test tcp_not_allowed');
    const other = await makeKey(join(bare, '..', 'other'));
    const deceived = await make({
      builtin_tools: ['git'],
      copies: [{ source: await knownHosts(other), target: knownHostsInside }],
    });
    expect(await say(deceived, list('git.test'))).toMatchObject({
      code: 128,
      out: expect.stringContaining('Host key verification failed'),
    });
    const stranger = await make({ builtin_tools: ['git'] });
    expect(await say(stranger, list('git.test'))).toMatchObject({
      code: 128,
      out: expect.stringContaining('Host key verification failed'),
    });
    const keyless = await make({ copies: [{ source: await knownHosts(), target: knownHostsInside }] });
    expect(await say(keyless, list('git.test'))).toMatchObject({
      code: 128,
      out: expect.stringContaining('Permission denied (publickey'),
    });
  });

  it('[R6] by plain ssh leaves by the proxy, with the variables and with none, and a configuration of the user’s own stays', async () => {
    const { make, port, knownHosts, user, entrances } = await openWorld();
    const known = { source: await knownHosts(), target: knownHostsInside };
    const box = await make({ builtin_tools: ['git'], copies: [known] });
    const ssh = `ssh -p ${port} ${user}@git.test 'echo of the server'`;
    const { exec, stdout } = await runInSandbox(box, ['sh', '-c', `${ssh} 2>&1`]);
    expect([exec.exit_code, stdout.data]).toEqual([0, 'of the server\n']);
    expect(await say(box, ssh)).toEqual({ code: 0, out: 'of the server\n' });
    expect(await entrances(box, 2)).toEqual(['git.test connect', 'git.test connect']);
    expect(await say(box, `ssh -o BatchMode=yes -p ${port} ${user}@localhost true`)).toMatchObject({
      code: 255,
      out: expect.stringContaining('connect to host localhost'),
    });
    const settings = join(await newFolder('own'), 'config');
    await writeFile(
      settings,
      `Host short\n  HostName git.test\n  Port ${port}\n  User ${user}\n  HostKeyAlias [git.test]:${port}\n`,
    );
    const other = await make({
      builtin_tools: ['git'],
      copies: [known, { source: settings, target: '/home/sally/.ssh/config' }],
    });
    expect(await say(other, "ssh short 'echo of the server'")).toEqual({ code: 0, out: 'of the server\n' });
    expect(await entrances(other, 1)).toEqual(['git.test transparent']);
  });
});
