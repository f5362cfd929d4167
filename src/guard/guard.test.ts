import { describe, expect, test } from 'vitest';
import { evaluateCommand } from '../policy/command-risk/evaluate.ts';
import { defaultLists, readLists } from '../policy/command-risk/lists.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { GuardRecord } from '../protocol/guard.ts';
import { type GuardParts, guardCommand, type HostLimits } from './guard.ts';

/** Where a command would run, and what was put on record about it. */
async function route(command: string, parts: Partial<GuardParts> = {}, timeoutMs = 300_000) {
  const records: GuardRecord[] = [];
  const ran: { where: string; limits?: HostLimits; before: number }[] = [];
  const run = { stdout: 'out', stderr: '', exitCode: 0, timedOut: false, durationMs: 1 };
  const lists = readLists({ ...defaultLists, blocked: ['git push'] });
  const result = await guardCommand({ text: command }, timeoutMs, {
    judge: (text) => evaluateCommand(text, { lists }),
    runInSandbox: async () => {
      ran.push({ where: 'sandbox', before: records.length });
      return { ...run, engine: 'docker' };
    },
    runOnHost: async (_command, limits) => {
      ran.push({ where: 'host', limits, before: records.length });
      return run;
    },
    isSameFolder: () => true,
    hasShell: () => true,
    otherEngine: async () => undefined,
    record: async (record) => void records.push(record),
    ...parts,
  });
  return { result, records, ran };
}

const noEngine = async (): Promise<never> => {
  throw new SallyportError('engine_unreachable', 'no container engine answered');
};
const yes = async () => ({ approved: true, id: 'ap-1', how: 'approved by approver' });
const no = async () => ({ approved: false, id: 'ap-1', how: 'denied by approver' });

describe('[C1] the guard', () => {
  test('runs what is safe on the host, on record before and after', async () => {
    const { result, records, ran } = await route('ls');
    expect(result).toEqual({
      status: 'success',
      stdout: 'out',
      stderr: '',
      exitCode: 0,
      durationMs: 1,
      sandboxed: false,
      engine: 'host',
      reason: 'safe',
    });
    expect(ran).toMatchObject([{ where: 'host', before: 1 }]);
    expect(records.map(({ where, outcome }) => `${where} ${outcome}`)).toEqual([
      'host started',
      'host exit 0',
    ]);
  });

  test('runs nothing on the host that cannot be put on record', async () => {
    const record = async () => {
      throw new SallyportError('state_failed', 'the disk is full');
    };
    const runOnHost = async (): Promise<never> => {
      throw new Error('it ran');
    };
    await expect(route('ls', { record, runOnHost })).rejects.toMatchObject({ code: 'state_failed' });
  });

  test.each(['frobnicate', 'npm install x', 'node x.js', 'sudo ls', 'cat /etc/shadow', 'if'])(
    'runs %j in a sandbox, and asks nobody',
    async (command) => {
      const { result, ran } = await route(command);
      expect(ran.map(({ where }) => where)).toEqual(['sandbox']);
      expect(result).toMatchObject({ status: 'success', sandboxed: true, engine: 'docker' });
      expect(result.reason).not.toBe('');
    },
  );

  test('[N5] runs nothing in a folder that was swapped while a person thought', async () => {
    let isSameFolder = true;
    const parts = { isSameFolder: () => isSameFolder };
    const slowly = async () => {
      isSameFolder = false;
      return await yes();
    };
    expect((await route('rm -rf /', { ...parts, ask: yes })).ran).toHaveLength(1);
    const { result, ran, records } = await route('rm -rf /', { ...parts, ask: slowly });
    expect(ran).toEqual([]);
    expect(result).toMatchObject({ status: 'rejected', reason: expect.stringContaining('another folder') });
    expect(records).toMatchObject([{ where: 'nowhere', outcome: 'rejected' }]);
    isSameFolder = true;
    const confirmNoIsolation = async () => {
      isSameFolder = false;
      return true;
    };
    const alone = await route('make', { ...parts, runInSandbox: noEngine, confirmNoIsolation });
    expect(alone.ran).toEqual([]);
    expect(alone.result.status).toBe('rejected');
  });

  test('runs what destroys in a sandbox, after a yes and not without', async () => {
    const approved = await route('rm -rf /', { ask: yes });
    expect(approved.ran.map(({ where }) => where)).toEqual(['sandbox']);
    expect(approved.result.reason).toContain('approved (ap-1)');
    for (const parts of [{ ask: no }, {}]) {
      const { result, ran, records } = await route('rm -rf /', parts);
      expect(ran).toEqual([]);
      expect(result).toMatchObject({ status: 'rejected', exitCode: null, sandboxed: false, engine: 'none' });
      expect(records).toMatchObject([{ where: 'nowhere', outcome: 'rejected' }]);
    }
  });

  test('refuses what the user blocked, whatever anybody says', async () => {
    const { result, ran } = await route('git push', { ask: yes, confirmNoIsolation: async () => true });
    expect(ran).toEqual([]);
    expect(result).toMatchObject({ status: 'rejected', reason: expect.stringContaining('blocked') });
  });

  test('gives a line of shell to a sandbox where the host has not the shell that was judged', async () => {
    expect((await route('ls', { hasShell: () => false })).ran).toMatchObject([{ where: 'sandbox' }]);
  });

  test('passes on that an engine is there and broken, and runs nothing', async () => {
    const runInSandbox = async (): Promise<never> => {
      throw new SallyportError('engine_permission_denied', 'the socket is closed to this user');
    };
    const confirmNoIsolation = async () => true;
    await expect(route('make', { runInSandbox, confirmNoIsolation })).rejects.toMatchObject({
      code: 'engine_permission_denied',
    });
  });
});

describe('[C4] without an engine the guard', () => {
  test('asks nobody to run again what had its sandbox when the engine went away', async () => {
    const runInSandbox: GuardParts['runInSandbox'] = async (_command, { made }) => {
      made();
      return await noEngine();
    };
    const confirmNoIsolation = async () => true;
    const runOnHost = async (): Promise<never> => {
      throw new Error('it ran');
    };
    await expect(route('make', { runInSandbox, confirmNoIsolation, runOnHost })).rejects.toMatchObject({
      code: 'engine_unreachable',
    });
  });

  test('still runs on the host what belongs there', async () => {
    const { result } = await route('ls', { runInSandbox: noEngine });
    expect(result).toMatchObject({ status: 'success', engine: 'host' });
  });

  test('rejects the rest where nobody can be asked', async () => {
    for (const command of ['make', 'rm -rf /']) {
      const { result, ran } = await route(command, { runInSandbox: noEngine, ask: noEngine });
      expect(ran).toEqual([]);
      expect(result).toMatchObject({ status: 'rejected', reason: expect.stringContaining('nobody to ask') });
    }
  });

  test('rejects it where the answer is no, and where bubblewrap is there', async () => {
    const denied = await route('make', { runInSandbox: noEngine, confirmNoIsolation: async () => false });
    expect(denied.ran).toEqual([]);
    expect(denied.result.reason).toContain('without isolation was denied');
    const better = await route('make', {
      runInSandbox: noEngine,
      confirmNoIsolation: async () => true,
      otherEngine: async () => 'bubblewrap',
    });
    expect(better.ran).toEqual([]);
    expect(better.result.reason).toContain('bubblewrap is there');
  });

  test.each([
    [300_000, 10_000],
    [2000, 2000],
    [0, 10_000],
  ])('runs it after a yes within min(%i ms, 10 s) and 50 KB, and says so', async (asked, limit) => {
    const { result, ran, records } = await route(
      'make',
      { runInSandbox: noEngine, confirmNoIsolation: async () => true },
      asked,
    );
    expect(ran).toMatchObject([
      { where: 'host', limits: { timeoutMs: limit, graceMs: 0, outputBytes: 50 * 1024 } },
    ]);
    expect(result).toMatchObject({ sandboxed: false, reason: expect.stringContaining('without isolation') });
    expect(records.map(({ where }) => where)).toEqual(['host without isolation', 'host without isolation']);
  });
});
