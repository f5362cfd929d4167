/** What only a real sandbox shows: pauses, pids limits, and hosts that stall the engine's stream. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { inspectContainer } from '../../src/engines/docker/containers/inspect.ts';
import { stopContainer } from '../../src/engines/docker/containers/stop.ts';
import { attachStalled } from '../support/attach-stalled.ts';
import { makeBox, startBox, type TestBox } from '../support/box.ts';
import { bundleProgram } from '../support/child-program.ts';
import { testEngine } from '../support/engine.ts';
import type { FileHostOrder } from '../support/file-host.ts';
import { capture, greet, plainEnv, runIn, Transcript, testToken } from '../support/porter-child.ts';
import { until } from '../support/until.ts';

const { connection } = testEngine();

async function post(path: string): Promise<void> {
  await connection.json({ method: 'POST', path });
}

/** How long each takes, in ms. */
async function within(limitMs: number, what: () => Promise<unknown>): Promise<void> {
  const started = performance.now();
  await what();
  expect(performance.now() - started).toBeLessThan(limitMs);
}

describe('a sandbox', () => {
  it('[G5] does not count the time in which it was paused against a deadline', async () => {
    const [{ porter, id }, elsewhere] = await Promise.all([startBox(), startBox()]);
    const { exec, stdout } = capture(porter, {
      argv: ['bash', '-c', 'read line; echo "$line"; sleep 1000'],
      env: plainEnv,
      cwd: '/',
      stdin: true,
      deadlineMs: 4_000,
      graceMs: 100,
    });
    await exec.started;
    await post(`/containers/${id}/pause`);
    await runIn(elsewhere.porter, ['sleep', '5']);
    await post(`/containers/${id}/unpause`);
    const unpaused = performance.now();
    await exec.write(Buffer.from('still here\n'));
    const transcript = new Transcript(stdout);
    await transcript.until('still here');
    // And it holds all the same.
    expect(await exec.result).toMatchObject({ timedOut: true });
    expect(performance.now() - unpaused).toBeLessThan(30_000);
  });

  it('[G5] kills a fork bomb that has used up every process', async () => {
    const { porter } = await startBox({ pids: 100 });
    const bomb = 'b() { b | b & }; while :; do b; done';
    const { exec, stdout, stderr } = capture(porter, { argv: ['bash', '-c', bomb], env: plainEnv, cwd: '/' });
    stdout.discard();
    // What bash says when there is no process left to be had.
    await new Transcript(stderr).until('Resource temporarily unavailable');
    exec.kill(0);
    const result = await exec.result;
    expect(result).toMatchObject({ killed: true });
    expect(result.killedProcesses).toBeGreaterThan(3);
    const { stdout: left } = await runIn(porter, ['bash', '-c', 'ls -d /proc/[0-9]* | wc -l']);
    expect(Number(left)).toBeLessThan(10);
  });

  it('outlives a program that kills everything it may, and tells how every other exec ended', async () => {
    const { porter } = await startBox();
    const others = [1, 2, 3].map(() => capture(porter, { argv: ['sleep', '1000'], env: plainEnv, cwd: '/' }));
    await Promise.all(others.map(({ exec }) => exec.started));
    const killer = capture(porter, {
      argv: ['bash', '-c', 'kill -9 -1; sleep 1000'],
      env: plainEnv,
      cwd: '/',
    });
    for (const { exec } of [...others, killer]) expect(await exec.result).toMatchObject({ signal: 9 });
    expect((await runIn(porter, ['bash', '-c', 'ls -d /proc/[0-9]* | wc -l'])).exitCode).toBe(0);
  });
});

describe('the engine', () => {
  it('still answers, stops and lets a new host in, when the host was stopped under a flood of output', async () => {
    const { id, engine } = await floodedBox();
    await within(4_500, () => inspectContainer(connection, id));
    await within(4_500, async () => {
      const second = await greet(await engine.openRelay(id), 2);
      expect(await second.list()).toMatchObject([{ state: 'running' }]);
    });
    await within(4_500, () => stopContainer(connection, id, 5));
  });

  it('also stops, when the host was stopped in the middle of a flood and nobody came after it', async () => {
    const { id } = await floodedBox();
    await within(4_500, () => inspectContainer(connection, id));
    await within(4_500, () => stopContainer(connection, id, 5));
  });

  it('still answers and lets a new host in, when a second client is attached and does not read', async () => {
    const { id, engine, porter } = await startBox();
    await attachStalled(connection, id);
    const flood = capture(porter, { argv: ['cat', '/dev/zero'], env: plainEnv, cwd: '/' });
    flood.stdout.discard();
    // Long enough for the engine to be held up by the one who does not read: 20 MB, or two seconds next door.
    const elsewhere = await startBox();
    await Promise.race([flood.exec.result.catch(() => {}), runIn(elsewhere.porter, ['sleep', '2'])]);
    await within(4_500, () => inspectContainer(connection, id));
    await within(4_500, async () => {
      const second = await greet(await engine.openRelay(id), 2);
      expect(await second.list()).toHaveLength(1);
    });
  });

  it('also stops, when the host came by the relay and a second client is attached and does not read', async () => {
    const { id, engine } = await startBox();
    const porter = await greet(await engine.openRelay(id), 2);
    await attachStalled(connection, id);
    await attachStalled(connection, id);
    const { exec, stdout } = capture(porter, {
      argv: ['bash', '-c', 'head -c 20000000 /dev/zero; exec sleep 1000'],
      env: plainEnv,
      cwd: '/',
    });
    let taken = 0;
    for await (const chunk of stdout) {
      taken += chunk.length;
      if (taken === 20_000_000) break;
    }
    await exec.started;
    await within(4_500, () => inspectContainer(connection, id));
    await within(4_500, async () => {
      const second = await greet(await engine.openRelay(id), 3);
      expect(await second.list()).toMatchObject([{ state: 'running' }]);
    });
    await within(4_500, () => stopContainer(connection, id, 5));
  });
});

/** Its host is a process of its own that stands still in the middle of endless output. */
async function floodedBox(): Promise<TestBox> {
  const box = await makeBox();
  const { endpoint, apiVersion } = inject('engine');
  const { folder, outfile } = await bundleProgram('./file-host.ts');
  const file = join(folder, 'output');
  writeFileSync(file, '');
  const order: FileHostOrder = {
    door: { kind: 'attach', endpoint, apiVersion, id: box.id },
    epoch: 1,
    token: testToken.toString('hex'),
    file,
    argv: ['cat', '/dev/zero'],
  };
  const host = spawn(process.execPath, [outfile, JSON.stringify(order)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  onTestFinished(() => {
    host.kill('SIGKILL');
  });
  await once(host, 'spawn');
  await until(() => statSync(file).size >= 1_000_000);
  host.kill('SIGSTOP');
  return box;
}
