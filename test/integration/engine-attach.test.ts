import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { attachContainer } from '../../src/engines/docker/containers/attach.ts';
import { inspectContainer } from '../../src/engines/docker/containers/inspect.ts';
import { startContainer } from '../../src/engines/docker/containers/start.ts';
import { stopContainer } from '../../src/engines/docker/containers/stop.ts';
import type { Door } from '../../src/engines/docker/wire/door.ts';
import { makeContainer, testEngine } from '../support/engine.ts';

const engine = testEngine();
const { connection } = engine;

async function attached(
  script: string,
  options: { readonly signal?: AbortSignal } = {},
): Promise<{ id: string; door: Door }> {
  const id = await makeContainer(engine, {
    Cmd: ['sh', '-c', script],
    OpenStdin: true,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
  });
  const door = await attachContainer(connection, id, options);
  await startContainer(connection, id);
  return { id, door };
}

function closed(door: Door): Promise<void> {
  return new Promise((resolve) => {
    if (door.closed) resolve();
    else door.once('close', () => resolve());
  });
}

describe('an attached container', () => {
  it('gets what is written and gives it back, with stderr apart', async () => {
    const { door } = await attached('while read line; do echo "out $line"; echo "err $line" >&2; done');
    door.write('one\n');
    expect((await once(door, 'data'))[0].toString()).toBe('out one\n');
    door.write('two\n');
    expect((await once(door, 'data'))[0].toString()).toBe('out two\n');
    while (!door.stderrTail.includes('err two')) {
      door.write('more\n');
      await once(door, 'data');
    }
    expect(door.stderrTail).toMatch(/^err one\nerr two\n/);
    door.destroy();
  });

  it('gives all of its output, also what it wrote just before it ended', async () => {
    const { door } = await attached('head -c 1000000 /dev/zero | tr "\\0" x; echo END; echo why >&2; exit 3');
    const output = await text(door);
    expect(output.length).toBe(1_000_004);
    expect(output.endsWith('xEND\n')).toBe(true);
    expect(door.stderrTail).toBe('why\n');
    await closed(door);
  });

  it('does not wedge the engine when nobody reads 3 MB of its output', async () => {
    const { id, door } = await attached('head -c 3000000 /dev/zero; exec sleep 600');
    // Nobody reads the door; it must take everything in all the same.
    while (door.readableLength < 3_000_000) await new Promise((resolve) => setImmediate(resolve));
    const started = performance.now();
    expect(await inspectContainer(connection, id)).toMatchObject({ running: true });
    await stopContainer(connection, id, 0);
    expect(performance.now() - started).toBeLessThan(8_000);
    expect((await text(door)).length).toBe(3_000_000);
  });

  it('loses the connection when it floods a door that nobody reads, and the engine still answers', async () => {
    const { id, door } = await attached('exec cat /dev/zero');
    await closed(door);
    expect(door.errored).toMatchObject({ code: 'porter_protocol' });
    const started = performance.now();
    await inspectContainer(connection, id);
    await stopContainer(connection, id, 0);
    expect(performance.now() - started).toBeLessThan(8_000);
  });

  it('is let go by an abort signal after the upgrade, and goes on running', async () => {
    const controller = new AbortController();
    const { id, door } = await attached('exec cat', { signal: controller.signal });
    door.write('x\n');
    await once(door, 'data');
    controller.abort();
    await closed(door);
    expect(await inspectContainer(connection, id)).toMatchObject({ running: true });
  });

  it('that does not exist is engine_not_found', async () => {
    await expect(attachContainer(connection, 'sallyport-test-none')).rejects.toMatchObject({
      code: 'engine_not_found',
    });
  });
});
