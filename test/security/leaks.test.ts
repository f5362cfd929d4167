/** What is left after much use, after neighbours, and when the disk is full: nothing that was not there before. */

import { execFileSync } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createContainer } from '../../src/engines/docker/containers/create.ts';
import { inspectContainer } from '../../src/engines/docker/containers/inspect.ts';
import { removeContainer } from '../../src/engines/docker/containers/remove.ts';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { engineEvents } from '../../src/engines/docker/system/events.ts';
import { findVolume } from '../../src/engines/docker/volumes/inspect.ts';
import { EngineBoxImages } from '../../src/images/box-images.ts';
import { label, ownedLabels } from '../../src/protocol/labels.ts';
import type { HealthView, PruneView } from '../../src/protocol/views.ts';
import { Sandbox } from '../../src/sdk/sandbox.ts';
import { verifyAudit } from '../../src/store/audit-reader.ts';
import { type DaemonHome, daemonHome, type TestDaemon } from '../support/daemon-home.ts';
import { belongings, makeSandbox, memoryReport, pidOf, processFigures } from '../support/daemon-world.ts';
import { makeContainer, runContainer, testEngine } from '../support/engine.ts';
import { full } from '../support/requires.ts';
import { asRoot, when } from '../support/selection.ts';

/** Every path below the state folder. */
async function filesOf({ stateDir }: DaemonHome): Promise<readonly string[]> {
  return (await readdir(stateDir, { recursive: true })).sort();
}

const nothing = { containers: [], services: [], volumes: [], networks: [], folders: [] };

describe('[A12] after many sandboxes', () => {
  const cycles = full ? 200 : 10;
  const atOnce = 3;

  test(`${cycles} times create, exec, delete: engine, files, descriptors and memory are as before`, async () => {
    const home = await daemonHome();
    const { variables, heldBytes } = memoryReport(home);
    const daemon = await home.start(variables);
    const images = new Set<string>();
    const cycle = async (): Promise<void> => {
      await using box = await makeSandbox(daemon);
      const { image } = await inspectContainer(testEngine().connection, box.info.containerId ?? '');
      images.add(image);
      const outcome = await box.exec(['sh', '-c', 'head -c 250000 /dev/zero; exit 3'], { input: 'x' });
      expect(outcome).toMatchObject({ exitCode: 3, truncated: false });
    };
    const round = async (): Promise<void> => void (await Promise.all(Array.from({ length: atOnce }, cycle)));
    // What is loaded and cached at first use is no leak.
    for (let warm = 0; warm < 3; warm++) await round();
    const [files, before, heldBefore] = [
      await filesOf(home),
      await processFigures(pidOf(daemon)),
      await heldBytes(daemon),
    ];
    for (let done = 0; done < cycles; done += atOnce) await round();
    const after = await processFigures(pidOf(daemon));
    expect(await belongings(home)).toEqual(nothing);
    expect(await filesOf(home)).toEqual(files);
    expect(after.descriptors).toBeLessThanOrEqual(before.descriptors + 4);
    expect((await heldBytes(daemon)) - heldBefore).toBeLessThan(5 * 2 ** 20);
    // A uid is given again, so there are as many images of users as sandboxes at once, and no more.
    expect(images.size).toBeLessThanOrEqual(atOnce);
    expect(await Sandbox.list({ client: daemon.client })).toEqual([]);
  }, 600_000);

  test('volumes that an image asks for go with their sandbox', async () => {
    const engine = testEngine();
    const { connection } = engine;
    const draft = await makeContainer(engine);
    const commit = {
      method: 'POST',
      path: '/commit',
      query: { container: draft, changes: 'VOLUME /data' },
      body: { Labels: engine.labels() },
    } as const;
    const image = await connection.json<{ Id: string }, string>(commit, ({ Id }) => Id);
    const images = dockerImageEngine(connection);
    onTestFinished(async () => {
      await new EngineBoxImages(images).removeDerived(image);
      await images.remove(image);
    });
    const daemon = await (await daemonHome()).start();
    const box = await makeSandbox(daemon, { image });
    const name = await volumeAt('/data', box.info.containerId ?? '');
    expect(await findVolume(connection, name)).toMatchObject({ name });
    await box.remove();
    expect(await findVolume(connection, name)).toBeUndefined();
  });
});

/** The name of the volume that is mounted there. */
async function volumeAt(target: string, container: string): Promise<string> {
  const call = { method: 'GET', path: `/containers/${container}/json` } as const;
  interface Body {
    readonly Mounts: readonly { readonly Name: string; readonly Destination: string }[];
  }
  const found = await testEngine().connection.json<Body, string | undefined>(
    call,
    ({ Mounts }) => Mounts.find(({ Destination }) => Destination === target)?.Name,
  );
  if (found === undefined) throw new Error(`nothing is mounted at ${target}`);
  return found;
}

describe('[A12] what is not ours', () => {
  test('two daemons on one engine: same names, and neither sees, stops, prunes or removes what is of the other', async () => {
    const [one, other] = [await daemonHome(), await daemonHome()];
    const [first, second] = [await one.start(), await other.start()];
    const [mine, theirs] = [
      await makeSandbox(first, { name: 'box' }),
      await makeSandbox(second, { name: 'box' }),
    ];
    await using running = await theirs.spawn(['sleep', '1000'], { background: true });
    expect((await Sandbox.list({ client: first.client })).map(({ id }) => id)).toEqual([mine.id]);
    await expect(Sandbox.connect(theirs.id, { client: first.client })).rejects.toMatchObject({
      code: 'sandbox_not_found',
    });
    await mine.stop();
    await first.client.json('POST', '/v1/prune', { body: {} });
    await mine.remove();
    await first.client.shutdown();
    await first.ended;
    const again = await one.start();
    expect(await Sandbox.list({ client: again.client })).toEqual([]);
    expect(await belongings(one)).toEqual(nothing);
    expect(await theirs.refresh()).toMatchObject({ state: 'READY', runningExecs: 1 });
    expect((await theirs.execs()).find(({ id }) => id === running.id)).toMatchObject({ state: 'running' });
  });

  test('[R5] prune takes what lost its workspace and nothing else: neither foreign containers nor those of others', async () => {
    const { connection, image } = testEngine();
    const home = await daemonHome();
    const daemon = await home.start();
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-prune-'));
    await chmod(folder, 0o755);
    const workspace = { path: folder, mode: 'readonly' as const };
    const pruned = await makeSandbox(daemon, { name: 'pruned', workspace });
    const kept = await makeSandbox(daemon, { name: 'kept' });
    // Named like ours and without a label; ours by label but of another owner; of another owner with the id of one of ours.
    const bare = await createContainer(connection, {
      name: `sallyport-pruned-${folder.slice(-6).toLowerCase()}`,
      body: { Image: image, Entrypoint: [], Cmd: ['sh'], HostConfig: { NetworkMode: 'none' } },
    });
    onTestFinished(() => removeContainer(connection, bare));
    const foreign = await runContainer(testEngine(), 'sleep 1000', {
      labels: ownedLabels('sandbox', {
        [label.owner]: 'somebody-else',
        [label.id]: pruned.id,
        [label.name]: 'pruned',
      }),
    });
    await rm(folder, { recursive: true });
    const prune = async (dryRun: boolean) => {
      const body = { dry_run: dryRun };
      const { things } = await daemon.client.json<PruneView>('POST', '/v1/prune', { body });
      // Images without a base are a cache that all share; the rest is of this owner alone.
      return things.filter(({ kind }) => kind !== 'image');
    };
    const row = { kind: 'sandbox', id: pruned.id, name: 'pruned', size_bytes: expect.any(Number) };
    const why = expect.stringContaining(folder);
    expect(await prune(true)).toEqual([{ ...row, why, outcome: 'would_be_removed' }]);
    expect((await belongings(home)).containers).toHaveLength(2);
    expect(await prune(false)).toEqual([{ ...row, why, outcome: 'removed' }]);
    // A daemon that begins anew looks at all containers: it leaves these alone as well.
    daemon.child.kill('SIGKILL');
    await daemon.ended;
    const next = await home.start();
    expect((await Sandbox.list({ client: next.client })).map(({ name }) => name)).toEqual(['kept']);
    expect((await belongings(home)).containers).toEqual([kept.info.containerId]);
    expect(await inspectContainer(connection, bare)).toMatchObject({ status: 'created' });
    expect(await inspectContainer(connection, foreign)).toMatchObject({ running: true });
  });
});

describe('[C7][A15] what is written down', () => {
  test('an audit line for every execution, however it ended, and events without a gap', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    const box = await makeSandbox(daemon, { name: 'box', envs: { SECRET: 'do-not-log-me' } });
    const sandbox = expect.stringContaining('box');
    await box.exec(['true'], { reason: 'because' });
    await box.sh('exit 3');
    await box.sh('kill -9 $$');
    await box.sh('sleep 1000', { timeoutMs: 200, graceMs: 100 });
    await box.exec(['no-such-program']).catch(() => {});
    await box.exec(['cat'], { input: 'x', envs: { OTHER: 'nor-me' } });
    const lost = await box.spawn(['sleep', '1000'], { background: true });
    const killed = await box.spawn(['sleep', '1000'], { background: true });
    await killed.kill(0);
    await box.stop({ graceMs: 0 });
    lost.disconnect();
    const execs = await box.execs();
    await box.remove();
    const text = await readFile(join(home.stateDir, 'audit', 'audit.jsonl'), 'utf8');
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const idsOf = (some: typeof lines) => some.map(({ exec }) => exec).sort();
    const isStart = ({ outcome }: Record<string, unknown>) => outcome === 'started';
    const ends = lines.filter((line) => !isStart(line));
    for (const half of [lines.filter(isStart), ends]) {
      expect(idsOf(half)).toEqual(execs.map(({ id }) => id).sort());
    }
    const of = (program: string) => ends.filter(({ argv }) => (argv as string[])[0] === program);
    expect(lines[0]).toMatchObject({ n: 1, prev: '0'.repeat(64), argv: ['true'], outcome: 'started' });
    expect(of('true')).toEqual([
      {
        n: 2,
        prev: expect.stringMatching(/^[0-9a-f]{64}$/),
        at: expect.stringMatching(/^\d{4}-/),
        type: 'exec',
        sandbox,
        exec: expect.stringMatching(/^ex-/),
        argv: ['true'],
        where: expect.stringMatching(/runc standard .*sallyport-test/),
        reason: 'because',
        outcome: 'exit 0',
        duration_ms: expect.any(Number),
      },
    ]);
    expect(of('/bin/sh').map(({ outcome }) => outcome)).toEqual(['exit 3', 'signal SIGKILL', 'timed out']);
    expect(of('no-such-program')).toMatchObject([
      { outcome: expect.stringContaining('could not be started') },
    ]);
    expect(of('sleep')).toHaveLength(2);
    expect(await verifyAudit(home.stateDir)).toMatchObject({ ok: true, lines: lines.length });
    const files = await readdir(join(home.stateDir, 'events'));
    const events: { readonly sequence: number; readonly type: string }[] = [];
    for (const file of files.filter((name) => name.endsWith('.jsonl')).sort()) {
      const content = await readFile(join(home.stateDir, 'events', file), 'utf8');
      for (const line of content.trimEnd().split('\n')) events.push(JSON.parse(line));
    }
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
    const { sequence } = await daemon.client.json<HealthView>('GET', '/v1/health');
    expect(events).toHaveLength(sequence);
    const count = (type: string) => events.filter((event) => event.type === type).length;
    expect({ started: count('exec.started'), ended: count('exec.ended') }).toEqual({
      started: execs.length,
      ended: execs.length,
    });
    // Variables are nobody's business: not in any file but the record of the sandbox, which is gone.
    const all = await Promise.all(
      (await readdir(home.stateDir, { recursive: true, withFileTypes: true }))
        .filter((entry) => entry.isFile())
        .map((entry) => readFile(join(entry.parentPath, entry.name), 'utf8')),
    );
    for (const secret of ['do-not-log-me', 'nor-me']) expect(all.join('\n')).not.toContain(secret);
  });
});

when(asRoot).describe('[A12] a full disk below the state folder', () => {
  const megabytes = 8;

  async function onSmallDisk(): Promise<{
    readonly home: DaemonHome;
    readonly daemon: TestDaemon;
    readonly fill: () => Promise<void>;
    readonly free: () => Promise<void>;
  }> {
    const home = await daemonHome();
    const options = `size=${megabytes}m,mode=0700`;
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'sallyport-test', home.stateDir]);
    // Lazily: the daemon ends after this.
    onTestFinished(() => void execFileSync('umount', ['-l', home.stateDir]));
    const filler = join(home.stateDir, 'filler');
    return {
      home,
      daemon: await home.start(),
      fill: async () => {
        for (const bytes of [2 ** 20, 4096, 1]) {
          for (;;) {
            try {
              await writeFile(filler, Buffer.alloc(bytes), { flag: 'a' });
            } catch {
              break;
            }
          }
        }
      },
      free: async () => await rm(filler),
    };
  }

  test('what must be written down first is refused, typed, and nothing is half-made; when there is room all goes on', async () => {
    const { home, daemon, fill, free } = await onSmallDisk();
    const box = await makeSandbox(daemon, { name: 'box' });
    const before = await belongings(home);
    await fill();
    const full = { code: 'disk_full', advice: expect.stringContaining('Free disk space') };
    await expect(makeSandbox(daemon, { name: 'late' })).rejects.toMatchObject(full);
    expect(await belongings(home)).toEqual(before);
    await expect(box.exec(['echo', 'x'])).rejects.toMatchObject(full);
    // The daemon goes on answering, and knows what it knew.
    expect((await Sandbox.list({ client: daemon.client })).map(({ name }) => name)).toEqual(['box']);
    expect(await box.refresh()).toMatchObject({ state: 'READY' });
    await free();
    expect((await box.exec(['echo', 'y'])).stdout).toBe('y\n');
    await using late = await makeSandbox(daemon, { name: 'late' });
    expect((await late.exec(['true'])).exitCode).toBe(0);
  });

  test('a command whose output has no place is ended and told so; its sandbox goes on', async () => {
    const { home, daemon } = await onSmallDisk();
    await using box = await makeSandbox(daemon, { name: 'box' });
    const flood = `head -c ${2 * megabytes * 2 ** 20} /dev/zero; sleep 1000`;
    await expect(box.sh(flood)).rejects.toMatchObject({ code: 'output_lost' });
    expect(await box.refresh()).toMatchObject({ state: 'READY', runningExecs: 0 });
    expect(await daemon.client.json('GET', '/v1/health')).toMatchObject({ api: 'v1' });
    execFileSync('mount', ['-o', `remount,size=${8 * megabytes}m`, home.stateDir]);
    expect((await box.sh('cat /proc/[0-9]*/comm; echo after')).stdout).toMatch(
      /^(?![\s\S]*sleep)[\s\S]*after\n$/,
    );
  });

  test('[C7] does not lose the execution of a command that ends while there is no room', async () => {
    const { home, daemon, fill, free } = await onSmallDisk();
    await using box = await makeSandbox(daemon, { name: 'box' });
    const running = await box.spawn(['sh', '-c', 'echo on; read line; exit 3'], { stdin: true });
    await running.stdout[Symbol.asyncIterator]().next();
    await fill();
    running.stdin.end('go\n');
    expect(await running.wait()).toMatchObject({ exitCode: 3 });
    await free();
    const text = await readFile(join(home.stateDir, 'audit', 'audit.jsonl'), 'utf8');
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toContainEqual(
      expect.objectContaining({ exec: running.id, outcome: 'started', argv: expect.arrayContaining(['-c']) }),
    );
  });

  test('a new sandbox, which would get another connection, stays with the one it has until there is room', async () => {
    const { home, daemon, fill, free } = await onSmallDisk();
    const { connection } = testEngine();
    const events = engineEvents(connection, [`${label.owner}=${home.owner}`], {
      sinceSeconds: Math.floor(Date.now() / 1000),
    });
    await using box = await makeSandbox(daemon, { name: 'box' });
    await using running = await box.spawn(['sh', '-c', 'until [ -e /tmp/go ]; do sleep 0.1; done; echo on']);
    await fill();
    // The relay that was opened for it leaves: there is no room for the number of its connection. It is tried again and again,
    // more often than one that was lost would be.
    let left = 7;
    for await (const { action } of events) if (action === 'exec_die' && --left === 0) break;
    await free();
    await box.exec(['touch', '/tmp/go']);
    expect(await running.stdout.text()).toBe('on\n');
    expect(await box.refresh()).toMatchObject({ state: 'READY' });
  });

  test('one that is full in the middle of a create, a stop or a removal leaves a daemon that answers and can finish it', async () => {
    const { home, daemon, fill, free } = await onSmallDisk();
    const box = await makeSandbox(daemon, { name: 'box' });
    await using running = await box.spawn(['sleep', '1000'], { background: true });
    await fill();
    // Removing is how a user makes room.
    await box.remove().catch((error: unknown) => expect(error).toMatchObject({ code: 'disk_full' }));
    expect(await daemon.client.json('GET', '/v1/health')).toMatchObject({ api: 'v1' });
    await free();
    running.disconnect();
    await box.remove();
    expect(await Sandbox.list({ client: daemon.client })).toEqual([]);
    expect(await belongings(home)).toEqual(nothing);
    const making = makeSandbox(daemon, { name: 'next' });
    // Accepted, and then there is no room for what follows.
    while ((await Sandbox.list({ client: daemon.client })).length === 0) await Promise.resolve();
    await fill();
    const made = await making.catch((error: unknown) => error);
    expect(await daemon.client.json('GET', '/v1/health')).toMatchObject({ api: 'v1' });
    await free();
    if (made instanceof Sandbox) await made.remove();
    else expect(made).toMatchObject({ code: 'disk_full' });
    for (const { id } of await Sandbox.list({ client: daemon.client })) {
      await (await Sandbox.connect(id, { client: daemon.client })).remove();
    }
    expect(await belongings(home)).toEqual(nothing);
  });
});
