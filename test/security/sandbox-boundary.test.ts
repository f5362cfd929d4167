/**
 * What code in a sandbox of the daemon tries on the kernel, on the host and on its neighbours. Each act that is refused is
 * done in the same words where it is allowed; what only a privileged container may do is done in one.
 */

import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import type { ExecProcess } from '../../src/sdk/exec-process.ts';
import type { CreateOptions, Sandbox } from '../../src/sdk/sandbox.ts';
import { daemonHome, type TestDaemon } from '../support/daemon-home.ts';
import {
  belongings,
  makeSandbox,
  pidOf,
  processFigures,
  rawRequest,
  timed,
} from '../support/daemon-world.ts';
import { testEngine } from '../support/engine.ts';
import { onDocker, testImage } from '../support/engine-under-test.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { allActs, everyAct, inLooseContainer, probeFolder, verdicts } from '../support/privileged-acts.ts';
import { when, withLimits } from '../support/selection.ts';
import { serve } from '../support/sockets.ts';

describe('[A11] the boundary of a sandbox', () => {
  when(withLimits).test(
    'no privileged act works, in either profile; all of them work in a container that is not sealed',
    async () => {
      const daemon = await (await daemonHome()).start();
      const folder = probeFolder();
      const mounts = [{ source: folder, target: '/probe' }];
      await using standard = await makeSandbox(daemon, { mounts });
      await using strict = await makeSandbox(daemon, { profile: 'strict', mounts });
      expect(verdicts(await inLooseContainer(allActs, folder))).toEqual(everyAct('done'));
      expect(verdicts((await standard.sh(allActs)).stdout)).toEqual(everyAct('refused'));
      expect(verdicts((await strict.sh(allActs)).stdout)).toEqual(everyAct('refused'));
    },
  );

  test('[N5] nothing of the resolvers and domains of this machine is inside, as it is in another container', async () => {
    const daemon = await (await daemonHome()).start();
    await using plain = await makeSandbox(daemon, {});
    await using gated = await makeSandbox(daemon, { egress: {} });
    const strangers = (resolver: string): readonly string[] =>
      resolver
        .split('\n')
        .filter((line) => /^(nameserver|search|domain)\b/.test(line) && !ownLines.has(line));
    const ownLines = new Set(['nameserver 127.0.0.1', 'search .']);
    const show = 'cat /etc/resolv.conf';
    for (const box of [plain, gated]) expect(strangers((await box.sh(show)).stdout)).toEqual([]);
    if (onDocker) expect(strangers(await inLooseContainer(show, probeFolder()))).not.toEqual([]);
  });

  test('no capability, no new privileges and a filter, for every kind of exec', async () => {
    const daemon = await (await daemonHome()).start();
    await using box = await makeSandbox(daemon, {
      command: ['sh', '-c', 'cat /proc/self/status; sleep 1000'],
    });
    const sealed = (status: string): void => {
      const field = (name: string) => new RegExp(`^${name}:\\t(\\S+)`, 'm').exec(status)?.[1];
      for (const name of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
        expect(field(name), name).toMatch(/^0+$/);
      expect({ privileges: field('NoNewPrivs'), seccomp: field('Seccomp') }).toEqual({
        privileges: '1',
        seccomp: '2',
      });
      expect(field('Uid')).not.toBe('0');
      expect(field('Gid')).not.toBe('0');
    };
    sealed((await box.exec(['cat', '/proc/self/status'])).stdout);
    await using terminal = await box.spawn(['cat', '/proc/self/status'], { tty: { rows: 24, columns: 80 } });
    sealed((await terminal.stdout.text()).replaceAll('\r', ''));
    await using background = await box.spawn(['cat', '/proc/self/status'], { background: true });
    sealed(await background.stdout.text());
    const main = box.attach('main');
    sealed(await firstChunk(main));
    main.disconnect();
    // The control: the same file says so where it is otherwise.
    const loose = await inLooseContainer('cat /proc/self/status', temporaryFolder());
    expect(loose).toMatch(/^CapEff:\t0*[1-9a-f][\s\S]*^NoNewPrivs:\t0\nSeccomp:\t0$/m);
  });

  test('no socket of an engine or of the daemon is inside, under whatever name', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    await using box = await makeSandbox(daemon);
    // Pairs without a name lead nowhere but to each other.
    const find =
      "find / -xdev -type s 2>/dev/null; find /tmp /dev /run -type s 2>/dev/null; awk 'NF == 8 && NR > 1 { print $8 }' /proc/net/unix";
    const { stdout } = await box.sh(find);
    // On bubblewrap porter's door is a socket of the host's, which has no name inside.
    expect(stdout.trim().split('\n')).toEqual([onDocker ? expect.stringMatching(/^@sallyport-porter/) : '']);
    const paths = [
      testEngine().endpoint.replace('unix://', ''),
      '/var/run/docker.sock',
      '/run/docker.sock',
      '/run/containerd/containerd.sock',
      '/run/podman/podman.sock',
      home.stateDir,
    ];
    const seen = await box.sh(paths.map((path) => `test -e ${path} && echo ${path}`).join('; '));
    expect(seen.stdout).toBe('');
    // The control: a socket is found where there is one, by file and by name.
    const listen = `
import os, socket, sys
file, named = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
file.bind('/tmp/engine.sock')
named.bind(bytes(1) + b'hidden')
os.system(sys.argv[1])`;
    const found = await box.exec(['python3', '-c', listen, find]);
    expect(found.stdout).toMatch(/\/tmp\/engine\.sock[\s\S]*@hidden/);
    // And none can be asked for.
    const before = await belongings(home);
    for (const source of [
      testEngine().endpoint.replace('unix://', ''),
      `${home.stateDir}/daemon.sock`,
      home.stateDir,
    ]) {
      const spec = { ...testImage(), mounts: [{ source, target: '/data' }] };
      const { error } = await rawRequest(home, 'POST', '/v1/sandboxes', { body: JSON.stringify({ spec }) });
      expect(error).toMatchObject({ code: 'refused_by_policy', details: { field: 'mounts.0.source' } });
    }
    expect(await belongings(home)).toEqual(before);
  });

  test('[A1] only loopback: what is not inside is unreachable at once, also the host', async () => {
    const port = await serve((socket) => socket.end('host'));
    const daemon = await (await daemonHome()).start();
    await using box = await makeSandbox(daemon);
    const dial = `
import errno, socket, sys, threading, time
def attempt(name, family, kind, address):
    s = socket.socket(family, kind)
    s.settimeout(30)
    began = time.monotonic()
    try:
        s.connect(address)
        said = s.recv(9).decode() if kind == socket.SOCK_STREAM else 'sent'
    except OSError as error:
        said = errno.errorcode.get(error.errno, str(error))
    print(name, said, 'at-once' if time.monotonic() - began < 10 else 'late')
listener = socket.create_server(('127.0.0.1', 0))
threading.Thread(target=lambda: listener.accept()[0].sendall(b'inside'), daemon=True).start()
attempt('inside', socket.AF_INET, socket.SOCK_STREAM, listener.getsockname())
attempt('tcp', socket.AF_INET, socket.SOCK_STREAM, ('198.51.100.1', 80))
attempt('udp', socket.AF_INET, socket.SOCK_DGRAM, ('198.51.100.1', 53))
attempt('tcp6', socket.AF_INET6, socket.SOCK_STREAM, ('2001:db8::1', 80))
attempt('metadata', socket.AF_INET, socket.SOCK_STREAM, ('169.254.169.254', 80))
attempt('gateway', socket.AF_INET, socket.SOCK_STREAM, ('172.17.0.1', 80))
attempt('host', socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', ${port}))`;
    const { stdout } = await box.exec(['python3', '-c', dial]);
    expect(stdout.trimEnd().split('\n')).toEqual([
      'inside inside at-once',
      'tcp ENETUNREACH at-once',
      'udp ENETUNREACH at-once',
      expect.stringMatching(/^tcp6 (ENETUNREACH|EADDRNOTAVAIL) at-once$/),
      'metadata ENETUNREACH at-once',
      'gateway ENETUNREACH at-once',
      'host ECONNREFUSED at-once',
    ]);
    const shown = await box.sh(
      "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; tail -n +2 /proc/net/route; cut -c1-32 /proc/net/ipv6_route | sort -u",
    );
    expect(shown.stdout).toMatch(/^lo\n(0{31}[01]\n|f{2}0{30}\n)*$/);
  });
});

/** Tells an answer from none: a busy machine takes seconds for one, and without limits of the neighbour there is none. */
const answerMs = 15_000;

async function expectUnharmed(daemon: TestDaemon, neighbour: Sandbox): Promise<void> {
  for (let round = 0; round < 5; round++) {
    const health = await timed(daemon.client.json('GET', '/v1/health'));
    const command = await timed(neighbour.exec(['echo', 'well']));
    expect(command.value.stdout).toBe('well\n');
    expect(Math.max(health.ms, command.ms)).toBeLessThan(answerMs);
  }
}

async function firstChunk(running: ExecProcess): Promise<string> {
  for await (const chunk of running.stdout) return chunk.toString();
  throw new Error('it ended without a word');
}

when(withLimits).describe('[A11] a bomb harms nobody but its own sandbox', () => {
  const small = { memory: '128m', cpus: 0.5, pids: 64 };

  async function scene(more: CreateOptions = {}) {
    const home = await daemonHome();
    const daemon = await home.start();
    const [bomber, neighbour] = await Promise.all([
      makeSandbox(daemon, { limits: small, ...more }),
      makeSandbox(daemon, more),
    ]);
    return { home, daemon, bomber, neighbour };
  }

  test('a fork bomb: neighbours and daemon answer, and its own sandbox does after it is killed', async () => {
    const { daemon, bomber, neighbour } = await scene();
    const bomb = await bomber.spawn([
      'python3',
      '-c',
      'import os\ntold = False\nwhile True:\n    try: os.fork()\n    except OSError:\n        if not told: os.write(1, b"full")\n        told = True',
    ]);
    expect(await firstChunk(bomb)).toContain('full');
    await expectUnharmed(daemon, neighbour);
    await bomb.kill(0);
    expect(await bomb.wait()).toMatchObject({ signal: 'SIGKILL', killed: true });
    expect((await bomber.exec(['echo', 'again'])).stdout).toBe('again\n');
  });

  test('a memory bomb: it is killed and told as such, and its own sandbox goes on', async () => {
    const { daemon, bomber, neighbour } = await scene();
    const bomb = await bomber.spawn([
      'python3',
      '-c',
      'import os\nos.write(1, b"on")\nx = []\nwhile True: x.append(bytearray(2**20))',
    ]);
    await firstChunk(bomb);
    await expectUnharmed(daemon, neighbour);
    expect(await bomb.wait()).toMatchObject({ signal: 'SIGKILL', oomKilled: true, killed: false });
    expect((await bomber.exec(['echo', 'again'])).stdout).toBe('again\n');
    expect((await bomber.refresh()).state).toBe('READY');
  });

  test('[G5] a full /tmp under a small limit does not brick the sandbox', async () => {
    const { daemon, bomber, neighbour } = await scene();
    const fill = await bomber.sh(
      'cat /dev/zero > /tmp/fill; cat /dev/zero > /dev/shm/fill; df -k /tmp /dev/shm | grep -c 100%',
    );
    expect(fill.stderr.match(/No space left on device/g)).toHaveLength(2);
    expect(fill.stdout).toBe('2\n');
    await expectUnharmed(daemon, neighbour);
    // Every exec and every file operation still works in it, also one that takes memory.
    expect((await bomber.exec(['python3', '-c', 'print(len(bytearray(32 * 2**20)))'])).stdout).toBe(
      '33554432\n',
    );
    await expect(bomber.files.write('/tmp/one-more', 'x')).rejects.toMatchObject({
      code: expect.stringMatching(/./),
    });
    await bomber.files.write('/home/sally/elsewhere', 'x');
    await bomber.sh('rm /tmp/fill /dev/shm/fill', { check: true });
    await bomber.files.write('/tmp/one-more', 'x');
    expect((await bomber.sh('cat /tmp/one-more')).stdout).toBe('x');
  });

  test('descriptors and inotify: what one sandbox uses up, another still has', async () => {
    const mounts = [{ source: probeFolder(), target: '/probe' }];
    const { daemon, bomber, neighbour } = await scene({ mounts });
    const [EMFILE, ENFILE] = [24, 23];
    await using inotify = await bomber.spawn(['/probe/probe', 'hoard', 'inotify']);
    await using files = await bomber.spawn(['/probe/probe', 'hoard', 'files']);
    for (const hoarder of [inotify, files]) {
      const [count = 0, errno = 0] = (await firstChunk(hoarder)).split(' ').map(Number);
      expect(count).toBeGreaterThan(10);
      expect([EMFILE, ENFILE]).toContain(errno);
    }
    await expectUnharmed(daemon, neighbour);
    // Counted by user: no other has the bomber's.
    const first = async (box: Sandbox, what: string): Promise<number> => {
      await using taking = await box.spawn(['/probe/probe', 'hoard', what]);
      return Number((await firstChunk(taking)).split(' ')[0]);
    };
    expect(await first(bomber, 'inotify')).toBe(0);
    expect(await first(neighbour, 'inotify')).toBeGreaterThan(10);
    expect(await first(bomber, 'files')).toBeGreaterThan(10);
    // The daemon itself can still watch in the neighbour, which takes an inotify of the neighbour's user.
    const stop = new AbortController();
    for await (const change of neighbour.files.watch('/tmp', { signal: stop.signal })) {
      expect(change.kind).toBe('ready');
      stop.abort();
      break;
    }
  });

  test('a log flood: the daemon stays small, and what is kept is bounded', async () => {
    const { home, daemon, bomber, neighbour } = await scene();
    const before = await processFigures(pidOf(daemon));
    const flood = await bomber.spawn(
      ['sh', '-c', 'yes 0123456789abcdef | head -c 150000000; echo end >&2; sleep 1000'],
      { background: true },
    );
    const said = firstChunkOfStderr(flood);
    await expectUnharmed(daemon, neighbour);
    expect(await said).toBe('end\n');
    const after = await processFigures(pidOf(daemon));
    expect(after.rssBytes - before.rssBytes).toBeLessThan(120 * 2 ** 20);
    await flood.kill(0);
    const [kept = 0] = (await text(spawn('du', ['-sb', home.stateDir]).stdout)).split('\t').map(Number);
    expect(kept).toBeLessThan(100 * 2 ** 20);
    const { info, truncated } = await flood.wait();
    expect({ bytes: info.stdoutBytes, truncated }).toEqual({ bytes: 150_000_000, truncated: true });
  });
});

async function firstChunkOfStderr(running: ExecProcess): Promise<string> {
  running.stdout.discard();
  for await (const chunk of running.stderr) return chunk.toString();
  throw new Error('it ended without a word');
}
