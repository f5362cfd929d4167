/** A connection that is not answered, and what becomes of it: the listener is there, and its backlog is full. */

import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { fullBacklog } from '../support/full-backlog.ts';
import { connectPorter, runIn, startPorter } from '../support/porter-child.ts';
import { lastingPorter } from '../support/porter-relay.ts';
import { asRoot, when } from '../support/selection.ts';
import { readAll } from '../support/sockets.ts';

const inside = (port: number) => ({ host: '127.0.0.1', port });

describe('a tunnel that is not answered', () => {
  it('is given up at its deadline, and porter gives up the connection too', async () => {
    const porter = await connectPorter();
    const backlog = await fullBacklog();
    const from = performance.now();
    const connecting = porter.connect(inside(backlog.port), { timeoutMs: 1_000 });
    const refused = expect(connecting).rejects.toMatchObject({
      code: 'tunnel_failed',
      message: `127.0.0.1:${backlog.port} did not answer within 1000 ms`,
    });
    await porter.ping();
    expect(backlog.waiting()).toBe(1);
    await refused;
    expect(performance.now() - from).toBeGreaterThan(990);
    await porter.ping();
    expect(backlog.waiting()).toBe(0);
    expect((await runIn(porter, ['echo', 'on'])).stdout).toBe('on\n');
  });

  it('ends at once when its caller aborts, and the one beside it is made as soon as there is room', async () => {
    const porter = await connectPorter();
    const backlog = await fullBacklog();
    const patient = porter.connect(inside(backlog.port), { timeoutMs: 30_000 });
    const controller = new AbortController();
    const aborted = porter.connect(inside(backlog.port), { signal: controller.signal, timeoutMs: 30_000 });
    await porter.ping();
    expect(backlog.waiting()).toBe(2);
    const from = performance.now();
    controller.abort();
    await expect(aborted).rejects.toMatchObject({ code: 'cancelled' });
    await porter.ping();
    expect(backlog.waiting()).toBe(1);
    expect(performance.now() - from).toBeLessThan(10_000);
    // The control: it was the full backlog that they waited for, and nothing else.
    backlog.accept();
    const tunnel = await patient;
    tunnel.end();
    expect((await readAll(tunnel)).toString()).toBe('here');
  });

  it.each(['abort', 'deadline'])(
    'is answered in the same moment as its %s comes, and harms nothing',
    async (how) => {
      const porter = await connectPorter();
      for (let round = 0; round < 100; round++) {
        const controller = new AbortController();
        const options = how === 'abort' ? { signal: controller.signal } : { timeoutMs: 1 };
        // Refused, so that porter's answer and the host's change of mind cross.
        const connecting = porter.connect(inside(1), options);
        if (how === 'abort') setImmediate(() => controller.abort());
        await expect(connecting).rejects.toMatchObject({
          code: expect.stringMatching(/^(tunnel_failed|cancelled)$/),
        });
      }
      await porter.ping();
    },
  );

  it('ends with its host, and the next host finds nothing of it', async () => {
    const { first, takeOver } = await lastingPorter();
    const backlog = await fullBacklog();
    const connecting = first.connect(inside(backlog.port), { timeoutMs: 30_000 });
    const lost = expect(connecting).rejects.toMatchObject({ code: 'porter_superseded' });
    await first.ping();
    expect(backlog.waiting()).toBe(1);
    const second = await takeOver();
    await lost;
    await second.ping();
    expect(backlog.waiting()).toBe(0);
  });

  // Only root may look at the descriptors of an undumpable process.
  when(asRoot).it('is one of 200 that are given up, with no descriptor left over', async () => {
    const started = startPorter();
    const porter = await connectPorter(started);
    const descriptors = (): number => readdirSync(`/proc/${started.child.pid}/fd`).length;
    const backlog = await fullBacklog();
    const before = descriptors();
    const controllers = Array.from({ length: 200 }, () => new AbortController());
    const all = controllers.map(({ signal }) =>
      porter.connect(inside(backlog.port), { signal, timeoutMs: 30_000 }),
    );
    const outcomes = Promise.allSettled(all);
    await porter.ping();
    expect(descriptors()).toBe(before + 200);
    expect(backlog.waiting()).toBe(200);
    for (const controller of controllers) controller.abort();
    for (const outcome of await outcomes) expect(outcome).toMatchObject({ reason: { code: 'cancelled' } });
    await porter.ping();
    expect(descriptors()).toBe(before);
  });
});
