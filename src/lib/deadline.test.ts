import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { deadline } from './deadline.ts';

describe('deadline', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('fires when the time is over, and says that it was the time', () => {
    const limit = deadline(100);
    vi.advanceTimersByTime(99);
    expect(limit.signal.aborted).toBe(false);
    vi.advanceTimersByTime(1);
    expect(limit.signal.aborted).toBe(true);
    expect(limit.expired()).toBe(true);
  });

  it("fires with the caller's abort and its reason, and says that it was not the time", () => {
    const parent = new AbortController();
    const limit = deadline(100, parent.signal);
    parent.abort(new Error('enough'));
    expect(limit.signal.reason).toEqual(new Error('enough'));
    expect(limit.expired()).toBe(false);
    limit.dispose();
    expect(deadline(100, parent.signal).signal.aborted).toBe(true);
  });

  it('goes on while the work is seen to advance', () => {
    let advances = true;
    const limit = deadline(100, undefined, () => advances);
    vi.advanceTimersByTime(1_000);
    expect(limit.signal.aborted).toBe(false);
    advances = false;
    vi.advanceTimersByTime(100);
    expect(limit.expired()).toBe(true);
  });

  it('leaves neither timer nor listener when it is disposed of', () => {
    const parent = new AbortController();
    deadline(100, parent.signal).dispose();
    expect(vi.getTimerCount()).toBe(0);
    expect(getEventListeners(parent.signal, 'abort')).toHaveLength(0);
  });

  it('takes a time longer than a timer can hold for a long one, not for none', () => {
    const limit = deadline(Number.POSITIVE_INFINITY);
    vi.advanceTimersByTime(60_000);
    expect(limit.signal.aborted).toBe(false);
    limit.dispose();
  });
});
