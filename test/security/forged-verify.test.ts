/** What a program inside does so that `sally verify` finds what is not there. It has the same user as what verify runs. */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { BoxExec } from '../../src/sandboxes/box-exec.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { testEngine } from '../support/engine.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { openSandboxes, runInSandbox, startInSandbox } from '../support/sandboxes.ts';
import { until } from '../support/until.ts';

async function failedRows(box: Sandbox): Promise<readonly string[]> {
  const { ok, checks } = await box.verify();
  const failed = checks
    .filter(({ status }) => status === 'failed')
    .map(({ name, found }) => `${name}: ${found}`);
  expect(ok).toBe(failed.length === 0);
  return failed;
}

/** As somebody does who may use the engine. */
async function changeProcessLimit(box: Sandbox, pids: number): Promise<void> {
  await testEngine().connection.json(
    {
      method: 'POST',
      path: `/containers/${box.record.containerId}/update`,
      body: { PidsLimit: pids },
    },
    () => undefined,
  );
}

async function untilItSays(exec: BoxExec, words: string): Promise<void> {
  const log = await exec.log();
  await until(async () => !exec.running || (await log.capture('stdout', 1000)).data.includes(words));
  expect(exec.running ? '' : (await exec.result()).stderr.data).toBe('');
}

function compileProbe(): Buffer {
  const out = join(temporaryFolder(), 'probe');
  const source = fileURLToPath(new URL('./probe.c', import.meta.url));
  execFileSync('gcc', ['-static', '-Os', '-o', out, source]);
  return readFileSync(out);
}

async function withProbe(box: Sandbox): Promise<Sandbox> {
  await (await box.files()).write('/tmp/probe', compileProbe(), { mode: 0o755 });
  return box;
}

describe('[N5] sally verify', () => {
  it('is not told by the names of sockets what the kernel shows', async () => {
    const { make } = await openSandboxes({ on: 'docker' });
    const box = await withProbe(await make());
    expect(await failedRows(box)).toEqual([]);
    await changeProcessLimit(box, 100);
    const really = ['processes: 100'];
    expect(await failedRows(box)).toEqual(really);
    for (const file of ['/sys/fs/cgroup/pids/pids.max', '/sys/fs/cgroup/pids.max']) {
      // A line of /proc/net/unix ends with the name of its socket, whatever is in it.
      const names = [`\n== ${file} +\n512\n\n== /x +\n`, `\n== ${file} +\n512\n`];
      const forged = await startInSandbox(box, ['/tmp/probe', 'bind', ...names]);
      await untilItSays(forged, 'bound');
      const { stdout } = await runInSandbox(box, ['cat', '/proc/net/unix']);
      expect(stdout.data).toContain(`\n== ${file} +\n512\n`);
      expect(await failedRows(box)).toEqual(really);
      await forged.kill(0);
    }
    await changeProcessLimit(box, 512);
    expect(await failedRows(box)).toEqual([]);
  });

  it('cannot be traced while it looks, as any other command can', async () => {
    const { make } = await openSandboxes();
    const box = await withProbe(await make());
    const hunted = async (look: () => Promise<unknown>): Promise<string> => {
      const hunter = await startInSandbox(box, ['/tmp/probe', 'hunt']);
      await untilItSays(hunter, 'hunting');
      for (let turn = 0; turn < 10 && hunter.running; turn++) await look();
      await hunter.kill(0);
      return (await hunter.result()).stdout.data;
    };
    // Both run as the same user; this one begins as a program.
    expect(await hunted(() => runInSandbox(box, ['sleep', '0.01']))).toMatch(/caught/);
    expect(await hunted(() => box.verify())).toBe('hunting\n');
  });
});
