import { describe, expect, it } from 'vitest';
import type { SandboxRecord } from './records.ts';
import { retentionCheckMs, retentionReason } from './retention.ts';

const day = 86_400_000;
const nowMs = Date.parse('2026-11-16T12:00:00Z');
const overSince = (agoMs: number): string => new Date(nowMs - agoMs).toISOString();
const kept = (state: SandboxRecord['state'], agoMs: number, olderThanMs?: number): boolean =>
  retentionReason(
    { state, stoppedAt: overSince(agoMs), createdAt: overSince(400 * day) },
    nowMs,
    olderThanMs,
  ) === undefined;

describe('[A16] a sandbox that is not used any more', () => {
  it('is kept for 15 days after its stop, and for a day after it failed', () => {
    expect([kept('STOPPED', 15 * day), kept('STOPPED', 15 * day + 1)]).toEqual([true, false]);
    expect([kept('FAILED', day), kept('FAILED', day + 1)]).toEqual([true, false]);
  });

  it('is kept in every other state, however old it is', () => {
    for (const state of ['PENDING', 'READY', 'PAUSED', 'STOPPING', 'DELETING'] as const) {
      expect(kept(state, 300 * day), state).toBe(true);
      expect(kept(state, 300 * day, 1), state).toBe(true);
    }
  });

  it('goes sooner where prune is told an age', () => {
    expect([kept('STOPPED', 3 * day, 2 * day), kept('STOPPED', day, 2 * day)]).toEqual([false, true]);
  });

  it('counts from its creation where no stop is known', () => {
    const record = { state: 'FAILED', createdAt: overSince(2 * day) } as const;
    expect(retentionReason(record, nowMs)).toBe('failed more than a day ago');
  });

  it('is looked for every hour', () => {
    expect(retentionCheckMs).toBe(3_600_000);
  });
});
