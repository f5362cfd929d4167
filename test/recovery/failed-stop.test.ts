/** The engine refuses to stop a sandbox, as while it is restarted: nothing waits for ever, and the next attempt works. */

import { describe, expect, test } from 'vitest';
import type { BoxEngine } from '../../src/sandboxes/ports.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { openSandboxes, runInSandbox, startInSandbox, type TestSandboxes } from '../support/sandboxes.ts';
import { until } from '../support/until.ts';

const away = async (): Promise<never> => {
  throw new Error('the engine is away');
};

/** These calls fail until the returned function is called. */
function failing({ world }: TestSandboxes, ...calls: readonly (keyof BoxEngine)[]): () => void {
  const { engine } = world;
  const before = { ...engine };
  Object.assign(engine, Object.fromEntries(calls.map((call) => [call, away])));
  return () => void Object.assign(engine, before);
}

const said = async (box: Sandbox): Promise<string> => (await runInSandbox(box, ['echo', 'on'])).stdout.data;

describe('[A16] a stop that fails', () => {
  test('leaves a sandbox that runs usable, and is tried again', async () => {
    const made = await openSandboxes();
    const box = await made.make();
    const back = failing(made, 'stop');
    await expect(box.stop(0)).rejects.toThrow('the engine is away');
    expect(box.state).toBe('READY');
    expect(await said(box)).toBe('on\n');
    back();
    await box.stop(0);
    expect(box.state).toBe('STOPPED');
  });

  test('leaves the state before where the engine cannot be asked either', async () => {
    const made = await openSandboxes();
    const box = await made.make();
    const back = failing(made, 'stop', 'find');
    await expect(box.stop(0)).rejects.toThrow('the engine is away');
    expect(box.state).toBe('READY');
    back();
    expect(await said(box)).toBe('on\n');
  });

  test('is a stop where the sandbox has ended all the same', async () => {
    const made = await openSandboxes();
    const box = await made.make();
    const { stop } = made.world.engine;
    Object.assign(made.world.engine, {
      stop: async (id: string, graceMs: number) => {
        await stop(id, graceMs);
        await away();
      },
    });
    await box.stop(0);
    expect(box.state).toBe('STOPPED');
  });

  test('never lets a wait take the event loop: it is looked at again, and ends with an error', async () => {
    const made = await openSandboxes();
    const box = await made.make();
    const { store } = made.world;
    const save = store.save.bind(store);
    const back = failing(made, 'stop', 'find');
    Object.assign(store, {
      save: (record: Parameters<typeof save>[0]) => {
        if (record.state === 'READY') throw new Error('no room');
        save(record);
      },
    });
    await expect(box.stop(0)).rejects.toThrow();
    expect(box.state).toBe('STOPPING');
    let ticks = 0;
    const timer = setInterval(() => ++ticks, 10);
    await expect(box.files()).rejects.toThrow('the engine is away');
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(10);
    Object.assign(store, { save });
    back();
    expect(await said(box)).toBe('on\n');
    expect(box.state).toBe('READY');
  });
});

describe('[N5] a stop for the disk usage', () => {
  const over = { rule: 'limit', of: 'bytes', limit: 1, used: 2 } as const;

  test('that fails leaves the disk watched, and the next one stops it', async () => {
    const made = await openSandboxes();
    const box = await made.make();
    const back = failing(made, 'stop');
    await expect(box.watched.exceed(over)).rejects.toThrow('the engine is away');
    expect(box.state).toBe('READY');
    expect(box.watched).toMatchObject({ isActive: true, containers: [{ boxId: box.record.containerId }] });
    expect(await said(box)).toBe('on\n');
    back();
    await box.watched.exceed(over);
    expect(box.view()).toMatchObject({ state: 'STOPPED', disk: { exceeded: 'limit' } });
  });

  test('takes place although the end of its commands cannot be written down', async () => {
    const made = await openSandboxes();
    const box = await made.make();
    const exec = await startInSandbox(box, ['sleep', '100']);
    Object.assign(exec, { lose: async () => await away() });
    await box.watched.exceed(over);
    expect(box.view()).toMatchObject({ state: 'STOPPED', disk: { exceeded: 'limit' } });
    await until(() => made.reports.some((report) => report.includes('the engine is away')));
  });
});
