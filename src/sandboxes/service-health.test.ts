import { describe, expect, it } from 'vitest';
import { type HealthSubject, type HealthTimes, untilHealthy } from './service-health.ts';

const running = { running: true, exitCode: 0, oomKilled: false, status: 'running' as const };
const times: HealthTimes = { interval: 1000, timeout: 5000, retries: 3, start_period: 0 };

/** One whose check passes from `healthyAtMs` on, in a time that only its pauses and checks move. */
function subject(healthyAtMs: number, more: Partial<HealthSubject> = {}) {
  let nowMs = 0;
  let checks = 0;
  const made: HealthSubject = {
    name: 'db',
    check: async () => {
      checks++;
      nowMs += 10;
      return { passed: nowMs >= healthyAtMs, output: 'no' };
    },
    state: async () => running,
    lastWords: async () => 'last words',
    pause: async (ms) => {
      nowMs += ms;
    },
    nowMs: () => nowMs,
    ...more,
  };
  return { made, nowMs: () => nowMs, checks: () => checks };
}

describe('a service', () => {
  it('[A8] that is quick is found healthy long before the first interval is over', async () => {
    const quick = subject(100);
    await untilHealthy(quick.made, times);
    expect(quick.nowMs()).toBeLessThan(300);
  });

  it('[A8] has as many intervals as it has retries, however often it is asked', async () => {
    const late = subject(1900);
    await untilHealthy(late.made, times);
    const never = subject(Number.POSITIVE_INFINITY);
    await expect(untilHealthy(never.made, times)).rejects.toMatchObject({
      code: 'service_failed',
      message: 'service db did not become healthy: its check failed 3 times: no',
    });
    expect(never.nowMs()).toBeGreaterThan(2000);
    expect(never.nowMs()).toBeLessThan(4000);
    expect(never.checks()).toBeGreaterThan(3);
  });

  it('[A8] may fail for its start period', async () => {
    const slow = subject(20_000);
    await untilHealthy(slow.made, { ...times, start_period: 30_000 });
    await expect(untilHealthy(subject(20_000).made, times)).rejects.toMatchObject({ code: 'service_failed' });
  });

  it('[A9] that ends has failed at once, with its last words', async () => {
    const state = async () => ({ ...running, running: false, exitCode: 3, status: 'stopped' as const });
    const over = subject(Number.POSITIVE_INFINITY, { state });
    await expect(untilHealthy(over.made, times)).rejects.toMatchObject({
      message: 'service db ended with 3 before it was healthy: last words',
    });
    expect(over.checks()).toBe(1);
  });

  it('[A8] without a check is healthy when it runs', async () => {
    await untilHealthy(subject(0, { check: undefined }).made, times);
    const gone = subject(0, { check: undefined, state: async () => undefined });
    await expect(untilHealthy(gone.made, times)).rejects.toMatchObject({
      message: expect.stringContaining('was removed'),
    });
  });
});
