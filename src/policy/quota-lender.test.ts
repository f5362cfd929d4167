import { describe, expect, it } from 'vitest';
import { type LenderFacts, quotaLender, sharesQuotas } from './quota-lender.ts';

const facts: LenderFacts = {
  host: { uid: 1000, gid: 1000, platform: 'linux' },
  engine: { name: 'docker', rootless: false, defaultRuntime: 'runc' },
  freeUid: 64_007,
};
const wish = { profile: 'standard', runtime: undefined } as const;
const shared = { fromPool: false, user: { uid: 1000, gid: 1000, home: '/home/sally' } };
const lender = { uid: 64_007, gid: 64_007 };

describe('the lender of kernel quotas', () => {
  it.each(['runc', 'crun', 'io.containerd.runc.v2', '/usr/bin/crun', 'docker-runc'])(
    '[N22] has a uid of the pool where the sandbox has none, with the runtime %s',
    (runtime) => {
      expect(quotaLender({ ...wish, runtime }, shared, facts)).toEqual(lender);
      const engine = { ...facts.engine, name: 'podman', defaultRuntime: runtime };
      expect(quotaLender(wish, shared, { ...facts, engine })).toEqual(lender);
    },
  );

  it.each(['runsc', 'kata', 'io.containerd.kata.v2', 'krun', 'youcrunch'])(
    '[N22] is not needed with %s, which has a kernel of its own',
    (runtime) => {
      expect(quotaLender({ ...wish, runtime }, shared, facts)).toBeUndefined();
    },
  );

  it('[N22] is none for a uid of the pool, the strict profile, a rootless engine, bubblewrap and macOS', () => {
    expect(quotaLender(wish, shared, facts)).toEqual(lender);
    expect(quotaLender(wish, { ...shared, fromPool: true }, facts)).toBeUndefined();
    // Programs of the same user could trace it.
    const same = { ...shared, user: { ...shared.user, uid: 64_007 } };
    expect(quotaLender(wish, same, facts)).toBeUndefined();
    expect(quotaLender({ ...wish, profile: 'strict' }, shared, facts)).toBeUndefined();
    const rootless = { ...facts, engine: { ...facts.engine, rootless: true } };
    expect(quotaLender(wish, shared, rootless)).toBeUndefined();
    expect(sharesQuotas(wish, shared, rootless)).toBe(true);
    const bubblewrap = {
      ...facts,
      engine: { name: 'bubblewrap', rootless: false, defaultRuntime: 'bwrap' },
    };
    expect(quotaLender(wish, shared, bubblewrap)).toBeUndefined();
    expect(sharesQuotas(wish, shared, bubblewrap)).toBe(true);
    expect(sharesQuotas(wish, { fromPool: true }, bubblewrap)).toBe(false);
    expect(sharesQuotas({ ...wish, runtime: 'runsc' }, shared, facts)).toBe(false);
    const mac = { ...facts, host: { ...facts.host, platform: 'darwin' } };
    expect(quotaLender(wish, shared, mac)).toBeUndefined();
  });
});
