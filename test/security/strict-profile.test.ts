/** The ephemeral profile (C2): every row of its table, read back from inside a sandbox that the daemon made. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { inspectContainer } from '../../src/engines/docker/containers/inspect.ts';
import { label } from '../../src/protocol/labels.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { belongings, makeSandbox, rawRequest } from '../support/daemon-world.ts';
import { testEngine } from '../support/engine.ts';
import { onDocker, testImage } from '../support/engine-under-test.ts';
import { when, withLimits } from '../support/selection.ts';

/** Each command prints one line; cgroup v1 and v2 keep the same figure in different files. */
const rows: Readonly<Record<string, string>> = {
  user: 'echo $(id -u):$(id -g) $(id -un) $(id -gn) $USER',
  groups: 'id -G',
  home: 'echo $HOME $PWD',
  interfaces: "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' \\n'; echo",
  memory: 'cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null',
  swap: 'cat /sys/fs/cgroup/memory/memory.memsw.limit_in_bytes /sys/fs/cgroup/memory.swap.max 2>/dev/null | grep . || echo none',
  cpus: 'cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu.max 2>/dev/null',
  pids: 'cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null',
  root: "grep -oE '^[^ ]+ / [^ ]+ (ro|rw)' /proc/mounts | grep -oE '(ro|rw)$'",
  tmp: "grep ' /tmp ' /proc/mounts | grep -oE '^tmpfs|noexec|nosuid|nodev|size=[0-9]+k' | sort | tr '\\n' ' '; echo",
  tmpSize: "df -k /tmp | tail -1 | awk '{print $2}'",
  noNewPrivileges: "grep -E '^NoNewPrivs' /proc/self/status | cut -f2",
  seccomp: "grep -E '^Seccomp:' /proc/self/status | cut -f2",
  capabilities: "grep -E '^Cap' /proc/self/status | cut -f2 | sort -u",
};

/** Has so many children at once, and takes them all along. */
const keepProcesses = (count: number): string => `
import os, signal
kept = []
try:
    for i in range(${count}):
        pid = os.fork()
        if pid == 0: signal.pause()
        kept.append(pid)
finally:
    for pid in kept: os.kill(pid, signal.SIGKILL)
`;

when(withLimits).describe('[C2] the strict profile', () => {
  test('[C2] holds row by row, read back from inside', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    await using strict = await makeSandbox(daemon, { profile: 'strict' });
    const script = Object.entries(rows)
      .map(([name, line]) => `printf '%s=' ${name}; ${line}`)
      .join('\n');
    const { stdout } = await strict.sh(script, { check: true });
    const found = Object.fromEntries(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1).trim()]),
    );
    expect(found).toEqual({
      user: '65534:65534 nobody nogroup nobody',
      groups: '65534',
      home: '/tmp /tmp',
      interfaces: 'lo',
      memory: String(256 * 2 ** 20),
      // None on top of memory: equal on v1, zero on v2.
      swap: expect.stringMatching(new RegExp(`^(${256 * 2 ** 20}|0|none)$`)),
      cpus: expect.stringMatching(/^50000( 100000)?$/),
      pids: '100',
      root: 'ro',
      tmp: 'nodev noexec nosuid size=65536k tmpfs',
      tmpSize: '65536',
      noNewPrivileges: '1',
      seccomp: '2',
      capabilities: '0000000000000000',
    });
    const known = (await home.engine.list(home.owner)).find(({ id }) => id === strict.info.containerId);
    expect(known?.labels[label.sandbox]).toBe('ephemeral');
    if (onDocker) {
      const { connection } = testEngine();
      const { hostConfig } = await inspectContainer(connection, strict.info.containerId ?? '');
      expect(hostConfig).toMatchObject({ NetworkMode: 'none', ReadonlyRootfs: true, Privileged: false });
    }
    const verified = await strict.verify();
    expect(verified.ok).toBe(true);
    expect(verified.checks.filter(({ status }) => status !== 'ok')).toEqual([]);
  });

  test('[C2] is what is enforced and not only what is shown: the same acts work in the standard profile', async () => {
    const daemon = await (await daemonHome()).start();
    await using strict = await makeSandbox(daemon, { profile: 'strict' });
    await using standard = await makeSandbox(daemon);
    const acts: Readonly<Record<string, string>> = {
      execFromTmp: 'cp /bin/true /tmp/copied && /tmp/copied',
      fillTmp: 'dd if=/dev/zero of=/tmp/big bs=1M count=65 2>/dev/null && rm /tmp/big',
      // As the sandbox's user in its own home, so that only the read-only root can refuse it.
      writeHome: 'touch $HOME/planted && mkdir -p /home/sally && touch /home/sally/planted',
      manyProcesses: `python3 -c '${keepProcesses(110)}'`,
    };
    for (const [name, act] of Object.entries(acts)) {
      const [refused, allowed] = [await strict.sh(act), await standard.sh(act)];
      expect(refused.exitCode, `${name} in strict: ${refused.output}`).not.toBe(0);
      expect(allowed.exitCode, `${name} in standard: ${allowed.output}`).toBe(0);
    }
    const take = (megabytes: number) => ['python3', '-c', `x = bytearray(${megabytes} * 2**20)`];
    expect(await strict.exec(take(150))).toMatchObject({ exitCode: 0 });
    expect(await strict.exec(take(300))).toMatchObject({ signal: 'SIGKILL', oomKilled: true });
    expect(await standard.exec(take(300))).toMatchObject({ exitCode: 0, oomKilled: false });
  });

  test('[C2] cannot be widened: what asks for more is refused by field, and nothing is made', async () => {
    const home = await daemonHome();
    await home.start();
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-strict-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const before = await belongings(home);
    const refused: readonly [object, string, RegExp][] = [
      [{ workspace: { path: folder } }, 'workspace.mode', /live.*writable/],
      [{ workspace: { path: folder, mode: 'copy' } }, 'workspace.mode', /copy.*writable/],
      [
        { mounts: [{ source: folder, target: '/data', writable: true }] },
        'mounts.0.writable',
        /no writable mount/,
      ],
      [{ user: '1000:1000' }, 'user', /1000:1000.*nobody/],
      [{ limits: { memory: '257m' } }, 'limits.memory', /257 MiB.*256 MiB/],
      [{ limits: { cpus: 0.51 } }, 'limits.cpus', /0\.51.*0\.5/],
      [{ limits: { pids: 101 } }, 'limits.pids', /101.*100/],
    ];
    for (const [more, field, words] of refused) {
      const body = JSON.stringify({ spec: { ...testImage(), profile: 'strict', ...more } });
      const { status, error } = await rawRequest(home, 'POST', '/v1/sandboxes', { body });
      expect({ status, code: error.code, field: error.details['field'] }).toEqual({
        status: 400,
        code: 'refused_by_policy',
        field,
      });
      expect(error.message).toMatch(words);
      expect(error.advice).toMatch(/standard profile/);
    }
    expect(await belongings(home)).toEqual(before);
    // The controls: what it allows, and less than its limits.
    const spec = {
      ...testImage(),
      profile: 'strict',
      workspace: { path: folder, mode: 'readonly' },
      limits: { memory: '128m', cpus: 0.25, pids: 50 },
    };
    const allowed = await rawRequest(home, 'POST', '/v1/sandboxes', { body: JSON.stringify({ spec }) });
    expect(allowed).toMatchObject({ status: 201, json: { limits: { memory_bytes: 128 * 2 ** 20 } } });
  });
});
