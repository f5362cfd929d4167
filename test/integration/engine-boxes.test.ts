/** The port `BoxEngine` on real engines: each call means the same on Docker and on Podman. */

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { dockerBoxEngine } from '../../src/engines/docker/box-engine.ts';
import { createContainer } from '../../src/engines/docker/containers/create.ts';
import { removeContainer } from '../../src/engines/docker/containers/remove.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { hardenedBox } from '../../src/policy/hardening.ts';
import { readPorterBinary } from '../../src/porter/binary.ts';
import type { Porter } from '../../src/porter/porter.ts';
import type { BoxMount, BoxRequest } from '../../src/protocol/box.ts';
import { label, ownedLabels } from '../../src/protocol/labels.ts';
import type { BoxEngine, BoxEvent } from '../../src/sandboxes/ports.ts';
import { testEngine } from '../support/engine.ts';
import { connectionTo, httpServer } from '../support/little-engine.ts';
import { copyImage, type PodmanService, startPodman } from '../support/podman.ts';
import { greet, runIn } from '../support/porter-child.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { asRoot, when } from '../support/selection.ts';

const { image, labels } = testEngine();

interface Engine {
  readonly connection: EngineConnection;
  readonly engine: BoxEngine;
}

const engineOn = (connection: EngineConnection): Engine => ({
  connection,
  engine: dockerBoxEngine(connection, readPorterBinary),
});

const newOwner = (): string => `test-${randomBytes(6).toString('hex')}`;

/** Created and not started; removed when the test ends. */
async function makeBox(engine: BoxEngine, owner: string, more: Partial<BoxRequest> = {}): Promise<string> {
  const box = hardenedBox({
    name: `sallyport-test-${randomBytes(6).toString('hex')}`,
    image,
    porterVolume: await engine.providePorter(image),
    endsWithHost: false,
    labels: labels(ownedLabels('sandbox', { [label.owner]: owner, [label.id]: 'sb-test' })),
  });
  const id = await engine.create({ ...box, ...more });
  onTestFinished(() => engine.remove(id));
  return id;
}

async function startBox(
  engine: BoxEngine,
  owner: string,
  more: Partial<BoxRequest> = {},
): Promise<{ readonly id: string; readonly porter: Porter }> {
  const id = await makeBox(engine, owner, more);
  const door = await engine.attach(id);
  onTestFinished(() => {
    door.destroy();
  });
  await engine.start(id);
  return { id, porter: await greet(door, 1) };
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'));
  // The user of the box must be able to look in.
  chmodSync(folder, 0o755);
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Until `last` has come. */
async function take(events: AsyncIterable<BoxEvent>, last: BoxEvent['kind']): Promise<readonly BoxEvent[]> {
  const taken: BoxEvent[] = [];
  for await (const event of events) {
    taken.push(event);
    if (event.kind === last) break;
  }
  return taken;
}

function boxesOn(name: 'docker' | 'podman', get: () => Engine): void {
  it('[A10] tells what it is', async () => {
    const { engine, connection } = get();
    const facts = await engine.facts();
    expect(facts).toMatchObject({
      name,
      version: expect.stringMatching(/^\d+\./),
      endpoint: connection.endpoint,
      rootless: false,
    });
    expect(facts.runtimes).toContain(facts.defaultRuntime);
  });

  it('[A12] lists the boxes of an owner with their labels and state, and of nobody else', async () => {
    const { engine } = get();
    const owner = newOwner();
    const before = Date.now();
    const { id } = await startBox(engine, owner);
    const made = await makeBox(engine, owner);
    await makeBox(engine, newOwner());
    const boxes = await engine.list(owner);
    expect(boxes.map((box) => [box.id, box.status]).sort()).toEqual(
      [
        [id, 'running'],
        [made, 'created'],
      ].sort(),
    );
    for (const box of boxes) {
      expect(box.labels).toMatchObject({ [label.owner]: owner, [label.id]: 'sb-test' });
      expect(Math.abs(box.createdMs - before)).toBeLessThan(60_000);
    }
    expect(await engine.list(newOwner())).toEqual([]);
  });

  it('[G7] goes from created to running, paused, running and stopped, and starts again', async () => {
    const { engine } = get();
    const id = await makeBox(engine, newOwner());
    const status = async (): Promise<unknown> => (await engine.state(id)).status;
    expect(await engine.find(id)).toMatchObject({ status: 'created', running: false });
    await engine.start(id);
    expect(await status()).toBe('running');
    await engine.pause(id);
    await engine.pause(id);
    expect(await engine.state(id)).toMatchObject({ status: 'paused', running: true });
    await engine.unpause(id);
    await engine.unpause(id);
    expect(await status()).toBe('running');
    await engine.stop(id, 5_000);
    expect(await engine.find(id)).toMatchObject({ status: 'stopped', running: false, exitCode: 143 });
    await expect(engine.pause(id)).rejects.toMatchObject({ code: 'engine_conflict' });
    await expect(engine.unpause(id)).rejects.toMatchObject({ code: 'engine_conflict' });
    await engine.start(id);
    expect(await status()).toBe('running');
  });

  it('[G7] stopping does not mind what is stopped, never started or not there', async () => {
    const { engine } = get();
    const { id } = await startBox(engine, newOwner());
    await Promise.all([engine.stop(id, 5_000), engine.stop(id, 5_000)]);
    await engine.stop(id, 5_000);
    const made = await makeBox(engine, newOwner());
    await engine.stop(made, 5_000);
    expect(await engine.state(made)).toMatchObject({ running: false });
    await engine.stop('sallyport-test-none', 0);
    expect(await engine.find('sallyport-test-none')).toBeUndefined();
    await expect(engine.state('sallyport-test-none')).rejects.toMatchObject({ code: 'engine_not_found' });
  });

  it('[G7] stops a paused box as politely as one that runs', async () => {
    const { engine } = get();
    const { id } = await startBox(engine, newOwner());
    await engine.pause(id);
    await engine.stop(id, 10_000);
    expect(await engine.state(id)).toMatchObject({ status: 'stopped', exitCode: 143 });
  });

  it('[G7] kills after the grace what does not listen', async () => {
    const { engine, connection } = get();
    const deaf = await createContainer(connection, {
      body: {
        Image: image,
        Entrypoint: [],
        Cmd: ['sh', '-c', 'trap "" TERM; while :; do sleep 1; done'],
        Labels: labels(),
        HostConfig: { NetworkMode: 'none' },
      },
    });
    onTestFinished(() => removeContainer(connection, deaf));
    await engine.start(deaf);
    await engine.stop(deaf, 1);
    expect(await engine.state(deaf)).toMatchObject({ status: 'stopped', exitCode: 137 });
  });

  it('tells what a box uses, and of one that does not run that it uses nothing', async () => {
    const { engine } = get();
    const { id, porter } = await startBox(engine, newOwner());
    const before = await engine.stats(id);
    expect(before.memoryLimitBytes).toBe(4 * 2 ** 30);
    expect(before.pids).toBeGreaterThanOrEqual(1);
    // In a memory file, which counts as memory and stays when the program has ended.
    await runIn(porter, ['sh', '-c', 'head -c 50000000 /dev/zero > /tmp/full']);
    const after = await engine.stats(id);
    expect(after.memoryBytes - before.memoryBytes).toBeGreaterThan(40_000_000);
    expect(after.memoryBytes - before.memoryBytes).toBeLessThan(100_000_000);
    expect(after.cpuSeconds).toBeGreaterThan(before.cpuSeconds);
    await engine.stop(id, 5_000);
    await expect(engine.stats(id)).rejects.toMatchObject({ code: 'engine_conflict' });
  });

  it('[A15] tells what happens from the moment of asking, also before somebody listens', async () => {
    const { engine } = get();
    const owner = newOwner();
    const [id, stranger] = [await makeBox(engine, owner), await makeBox(engine, newOwner())];
    const controller = new AbortController();
    onTestFinished(() => controller.abort());
    const events = engine.events(owner, controller.signal);
    await Promise.all([engine.start(id), engine.start(stranger)]);
    await engine.pause(id);
    await engine.unpause(id);
    await engine.stop(id, 5_000);
    await engine.remove(id);
    expect(await take(events, 'removed')).toEqual([
      { boxId: id, kind: 'started' },
      { boxId: id, kind: 'paused' },
      { boxId: id, kind: 'resumed' },
      { boxId: id, kind: 'ended', exitCode: 143 },
      { boxId: id, kind: 'removed' },
    ]);
  });

  it('ends its events without an error when the listener has had enough', async () => {
    const { engine } = get();
    const controller = new AbortController();
    const events = engine.events(newOwner(), controller.signal)[Symbol.asyncIterator]();
    const next = events.next();
    controller.abort();
    expect(await next).toEqual({ done: true, value: undefined });
    const late = engine.events(newOwner(), controller.signal)[Symbol.asyncIterator]();
    expect(await late.next()).toEqual({ done: true, value: undefined });
  });

  describe('binds', () => {
    // Root can give a folder to somebody; anyone else has their own only.
    const [uid = 0, gid = 0] =
      process.getuid?.() === 0 ? [1234, 1234] : [process.getuid?.(), process.getgid?.()];
    const run = async (mounts: readonly BoxMount[], script: string): Promise<string> => {
      const { engine } = get();
      const { porter } = await startBox(engine, newOwner(), { mounts, user: { uid, gid } });
      const { stdout, stderr } = await runIn(porter, ['sh', '-c', script]);
      return stdout + stderr;
    };
    const folder = (): string => {
      const path = temporaryFolder();
      writeFileSync(join(path, 'file'), 'from the host\n');
      return path;
    };

    it('[A11][O8] are writable for the user of the box when they should be, and only then', async () => {
      const [open, closed] = [folder(), folder()];
      for (const path of [open, closed]) chownSync(path, uid, gid);
      const text = await run(
        [
          { source: open, target: '/workspace', writable: true },
          { source: closed, target: '/data', writable: false },
          { source: join(closed, 'file'), target: '/one/file', writable: false },
        ],
        'cat /workspace/file /data/file /one/file; echo inside > /workspace/new; echo inside > /data/new || true',
      );
      expect(text).toContain('from the host\n'.repeat(3));
      expect(text).toContain('Read-only file system');
      expect(readFileSync(join(open, 'new'), 'utf8')).toBe('inside\n');
      expect(existsSync(join(closed, 'new'))).toBe(false);
    });

    it('[O4] make nothing of a source that is not there', async () => {
      const source = join(temporaryFolder(), 'missing');
      const mounts = [{ source, target: '/workspace', writable: true }];
      await expect(makeBox(get().engine, newOwner(), { mounts })).rejects.toMatchObject({
        code: 'engine_failed',
      });
      expect(existsSync(source)).toBe(false);
    });

    it('[O4] mount the folder that was named, whatever its name, or none', async () => {
      const source = join(temporaryFolder(), 'a,target=etc,"b"');
      mkdirSync(source);
      writeFileSync(join(source, 'file'), 'odd\n');
      const reading = run([{ source, target: '/workspace', writable: false }], 'cat /workspace/file');
      if (name === 'docker') expect(await reading).toBe('odd\n');
      else await expect(reading).rejects.toMatchObject({ code: 'refused_by_policy' });
    });

    when(asRoot).it('[O8] keep read-only also what is mounted below on the host', async () => {
      const source = folder();
      const nested = join(source, 'nested');
      mkdirSync(nested);
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=1777', 'tmpfs', nested]);
      onTestFinished(() => {
        execFileSync('umount', [nested]);
      });
      writeFileSync(join(nested, 'secret'), 'of the host\n');
      const text = await run(
        [
          { source, target: '/data', writable: false },
          { source, target: '/workspace', writable: true },
        ],
        'echo inside > /data/nested/new; cat /workspace/nested/secret',
      );
      expect(existsSync(join(nested, 'new'))).toBe(false);
      expect(text).toContain('of the host\n');
    });
  });
}

describe('boxes on Docker', () => {
  const here = engineOn(testEngine().connection);
  boxesOn('docker', () => here);

  it('[A15] tells of memory that ran out', async () => {
    const { engine } = here;
    const owner = newOwner();
    const limits = {
      memoryBytes: 64 * 2 ** 20,
      cpus: 1,
      pids: 64,
      nofile: 1024,
      shmBytes: 2 ** 20,
      diskBytes: 2 ** 30,
    };
    const { id, porter } = await startBox(engine, owner, { limits, tmpfs: [] });
    const controller = new AbortController();
    onTestFinished(() => controller.abort());
    const events = engine.events(owner, controller.signal);
    const { signal } = await runIn(porter, ['sh', '-c', 'x=$(yes | head -c 300000000); echo "$x" | wc -c']);
    expect(signal).toBe(9);
    expect((await take(events, 'out-of-memory')).at(-1)).toEqual({ boxId: id, kind: 'out-of-memory' });
    expect(await engine.state(id)).toMatchObject({ status: 'running' });
  });

  it.each(['dies', 'says good-bye'])(
    '[A16] ends its events with an error when the engine %s',
    async (how) => {
      const path = await httpServer((request, response) => {
        response.writeHead(200, { 'Content-Type': 'application/json' });
        if (request.url?.startsWith('/v1.41/info') === true) {
          response.end(JSON.stringify({ SystemTime: new Date().toISOString() }));
        } else if (how === 'dies') {
          response.write('\n', () => response.destroy());
        } else response.end();
      });
      const { engine } = engineOn(connectionTo(path));
      const events = engine.events('me', new AbortController().signal);
      await expect(take(events, 'removed')).rejects.toMatchObject({ code: 'engine_unreachable' });
    },
  );
});

when(asRoot, requirement('Podman', commandExists('podman'))).describe('boxes on Podman', () => {
  let podman: PodmanService | undefined;
  let there: Engine | undefined;

  beforeAll(async () => {
    podman = await startPodman();
    await copyImage(testEngine().connection, podman.connection, image);
    there = engineOn(podman.connection);
  });
  afterAll(async () => {
    await podman?.stop();
  });

  boxesOn('podman', () => {
    if (there === undefined) throw new Error('Podman did not start');
    return there;
  });
});
