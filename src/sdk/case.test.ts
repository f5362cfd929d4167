import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { camelled, snaked } from './case.ts';

describe('names', () => {
  it('become camelCase in programs and snake_case on the wire, all the way down', () => {
    expect(camelled({ idle_ttl_ms: 1, a: [{ exit_code: 2 }] })).toEqual({
      idleTtlMs: 1,
      a: [{ exitCode: 2 }],
    });
    expect(snaked({ idleTtl: '1m', limits: { maxFoo: 1 } })).toEqual({
      idle_ttl: '1m',
      limits: { max_foo: 1 },
    });
  });

  it('of the user stay as they are: variables, labels, details', () => {
    const mine = {
      envs: { MY_VAR: '1', my_other: '2' },
      labels: { 'a_b.C': 'x' },
      details: { limit_bytes: 1 },
    };
    expect(camelled(mine)).toEqual(mine);
    expect(snaked(mine)).toEqual(mine);
  });

  it('leave out what is undefined', () => {
    expect(snaked({ timeoutMs: undefined, cwd: '/' })).toEqual({ cwd: '/' });
  });

  it('come back the same', () => {
    const name = fc.stringMatching(/^[a-z]+(_[a-z]+)*$/);
    fc.assert(
      fc.property(fc.dictionary(name, fc.integer()), (object) => {
        expect(snaked(camelled(object))).toEqual(object);
      }),
    );
  });
});
