/** A host that dies while a program is being started: what became of it is told to the next host when that asks, and not before. */

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { OutputQueue } from '../../src/porter/output-queue.ts';
import { queueSink } from '../../src/porter/output-sink.ts';
import type { Porter } from '../../src/porter/porter.ts';
import { capture } from '../support/porter-child.ts';
import { lastingPorter } from '../support/porter-relay.ts';

/** So many places to look for a program that its start can be held meanwhile. */
const longPath = '/n:'.repeat(40_000);
const ENOENT = 2;

/** Until it has no child: the start has failed. */
async function childless(porter: Porter, pid: number): Promise<void> {
  while (readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8') !== '') await porter.ping();
}

const childrenOf = (pid: number): readonly number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);

/** Stops all that a process has started, parents first, so that none starts another one meanwhile. */
function holdChildren(pid: number): readonly number[] {
  return childrenOf(pid).flatMap((child) => {
    process.kill(child, 'SIGSTOP');
    return [child, ...holdChildren(child)];
  });
}

it('a start that fails after a take-over is told to the new host when it asks', async () => {
  const { started, first, takeOver } = await lastingPorter();
  const lost = capture(first, { argv: ['no-such-program'], env: { PATH: longPath }, cwd: '/' });
  lost.exec.started.catch(() => {});
  await first.ping();
  const held = holdChildren(started.child.pid ?? 0);
  expect(held).not.toEqual([]);
  const second = await takeOver();
  // Or it had failed before, and this proves nothing.
  await expect(lost.exec.result).rejects.toMatchObject({ code: 'porter_superseded' });
  for (const pid of held) process.kill(pid, 'SIGCONT');
  await childless(second, started.child.pid ?? 0);
  await second.ping();
  const [known] = await second.list();
  if (known === undefined) throw new Error('porter has forgotten its exec');
  const resumed = second.resume(
    known,
    { stdout: 0, stderr: 0 },
    queueSink(new OutputQueue(), new OutputQueue()),
  );
  await expect(resumed.started).rejects.toMatchObject({
    code: 'exec_start_failed',
    details: { errno: ENOENT },
  });
  expect(await second.list()).toEqual([]);
});

it('a start that failed without a host is told when the same is asked for again', async () => {
  const { started, first, takeOver } = await lastingPorter();
  const request = { argv: ['no-such-program'], env: { PATH: longPath }, cwd: '/' } as const;
  const lost = capture(first, request);
  lost.exec.started.catch(() => {});
  lost.exec.result.catch(() => {});
  await first.ping();
  const second = await takeOver();
  await childless(second, started.child.pid ?? 0);
  const again = capture(second, request, lost.exec.stream);
  await expect(again.exec.started).rejects.toMatchObject({
    code: 'exec_start_failed',
    details: { errno: ENOENT },
  });
  // Nothing ran, so its number may be used for what does.
  const right = capture(second, { ...request, argv: ['/bin/true'] }, lost.exec.stream);
  expect(await right.exec.result).toMatchObject({ exitCode: 0 });
});
