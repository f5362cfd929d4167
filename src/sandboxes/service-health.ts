/**
 * When a service counts as healthy, and when it counts as failed. Knows no engine: it is handed what to ask.
 *
 * It asks often at first, because most services are up in a moment, but counts one failure an interval: `retries` and
 * `interval` mean what they say.
 */

import { SallyportError } from '../protocol/errors.ts';
import type { HealthcheckSpec } from '../protocol/service-spec.ts';
import type { CheckResult } from './ports/services.ts';
import type { BoxState } from './ports.ts';

export type HealthTimes = Pick<HealthcheckSpec, 'interval' | 'timeout' | 'retries' | 'start_period'>;

export const usualHealthTimes: HealthTimes = { interval: 1000, timeout: 5000, retries: 30, start_period: 0 };

export interface HealthSubject {
  readonly name: string;
  /** Undefined: it has no check, and is healthy when it runs. */
  readonly check: (() => Promise<CheckResult>) | undefined;
  readonly state: () => Promise<BoxState | undefined>;
  /** The last of what it printed, for the one who is told that it failed. */
  readonly lastWords: () => Promise<string>;
  readonly pause: (ms: number) => Promise<void>;
  readonly nowMs: () => number;
}

const firstPauseMs = 50;

/** Rejects with `service_failed`. Whoever gives up makes `pause` or `check` reject. */
export async function untilHealthy(subject: HealthSubject, times: HealthTimes): Promise<void> {
  const beganMs = subject.nowMs();
  let failures = 0;
  let countedMs = beganMs - times.interval;
  let pauseMs = Math.min(firstPauseMs, times.interval);
  for (;;) {
    const passed = subject.check === undefined ? undefined : await subject.check();
    const state = await subject.state();
    if (state?.running !== true) throw await ended(subject, state);
    if (passed === undefined || passed.passed) return;
    const nowMs = subject.nowMs();
    if (nowMs - beganMs >= times.start_period && nowMs - countedMs >= times.interval) {
      countedMs = nowMs;
      failures++;
      if (failures >= times.retries) throw unhealthy(subject, failures, passed.output);
    }
    await subject.pause(pauseMs);
    pauseMs = Math.min(pauseMs * 2, times.interval);
  }
}

async function ended(subject: HealthSubject, state: BoxState | undefined): Promise<SallyportError> {
  const how =
    state === undefined
      ? 'was removed'
      : state.oomKilled
        ? 'ran out of memory'
        : `ended with ${state.exitCode}`;
  return failed(subject.name, `${how} before it was healthy`, await subject.lastWords());
}

function unhealthy({ name }: HealthSubject, failures: number, output: string): SallyportError {
  const times = failures === 1 ? 'once' : `${failures} times`;
  return failed(name, `did not become healthy: its check failed ${times}`, output);
}

function failed(name: string, why: string, words: string): SallyportError {
  const said = words === '' ? '' : `: ${words}`;
  return new SallyportError('service_failed', `service ${name} ${why}${said}`, {
    details: { service: name },
  });
}
