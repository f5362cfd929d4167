import { describe, expect, it } from 'vitest';
import { LoopShare } from './loop-share.ts';

describe('[N22] the share of the loop that a link has', () => {
  it('is used up by work that follows directly, and whole again after a turn of the others or a pause', () => {
    const share = new LoopShare();
    share.begin(1000);
    expect([share.isUsedUp(1001), share.isUsedUp(1001.9), share.isUsedUp(1002.1)]).toEqual([
      false,
      false,
      true,
    ]);
    share.begin(1002.2);
    expect(share.isUsedUp(1002.3)).toBe(true);
    share.renew(1002.4);
    expect(share.isUsedUp(1003)).toBe(false);
    share.begin(1010);
    expect(share.isUsedUp(1011)).toBe(false);
  });
});
