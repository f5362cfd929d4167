import { expect, it } from 'vitest';
import { ratioToQuiet, verdictOf } from '../bench/noisy-limit.ts';

const row = (way, p99Ms, probe = 'exec true') => ({ way, probe, p50Ms: 1, p99Ms, maxMs: 99, samples: 100 });
const quiet = row('quiet', 10);

it('[N22] the bench fails where a flood pushes a p99 above the limit, and names it', () => {
  expect(verdictOf([quiet, row('gzip', 50), row('dns', 20)]).exitCode).toBe(0);
  expect(verdictOf([quiet, row('gzip', 50.1), row('dns', 20)])).toEqual({
    exitCode: 1,
    message: 'p99 above 50 ms: gzip: exec true (50.1 ms)',
  });
});

it('[N22] the bench fails where there is nothing to compare', () => {
  expect(verdictOf([quiet, row('dns', Number.NaN)]).exitCode).toBe(1);
  expect(verdictOf([quiet, row('spin', 20)]).exitCode).toBe(1);
  expect(verdictOf([]).exitCode).toBe(1);
  const busy = verdictOf([row('quiet', 60), row('dns', 60)]);
  expect([busy.exitCode, busy.message]).toEqual([1, expect.stringContaining('run it on a quiet machine')]);
});

it('the controls that do not use the daemon are not held to the limit of the bench', () => {
  expect(verdictOf([quiet, row('spin', 500), row('pipes', 500), row('dns', 20)]).exitCode).toBe(0);
  expect(verdictOf([quiet, row('spin', 500), row('pipes', 20)]).exitCode).toBe(1);
});

it('the ratio of the bench is that to the same probe without a flood', () => {
  const rows = [row('quiet', 2, 'GET /v1/health'), quiet, row('dns', 30)];
  expect(rows.map((one) => ratioToQuiet(one, rows))).toEqual([1, 1, 3]);
});
