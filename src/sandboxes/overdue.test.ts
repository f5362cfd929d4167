import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Overdue } from './overdue.ts';

describe('[G5] a command that should have ended', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const watched = () => {
    const seen = { active: true, overdue: 0 };
    const overdue = new Overdue({
      isActive: () => seen.active,
      patienceMs: 10_000,
      onOverdue: () => {
        seen.overdue++;
      },
    });
    return { seen, overdue };
  };

  it('is noticed once, when its time and the patience are over', () => {
    const { seen, overdue } = watched();
    overdue.allow(5000);
    vi.advanceTimersByTime(14_000);
    expect(seen.overdue).toBe(0);
    vi.advanceTimersByTime(2000);
    expect(seen.overdue).toBe(1);
    vi.advanceTimersByTime(60_000);
    expect(seen.overdue).toBe(1);
  });

  it('is not noticed where it ended, or where nothing was allowed', () => {
    const { seen, overdue } = watched();
    vi.advanceTimersByTime(60_000);
    overdue.allow(5000);
    vi.advanceTimersByTime(14_000);
    overdue.end();
    vi.advanceTimersByTime(60_000);
    expect(seen.overdue).toBe(0);
  });

  it('has all the time in which it was paused besides', () => {
    const { seen, overdue } = watched();
    overdue.allow(5000);
    vi.advanceTimersByTime(14_000);
    seen.active = false;
    vi.advanceTimersByTime(600_000);
    expect(seen.overdue).toBe(0);
    seen.active = true;
    vi.advanceTimersByTime(1000);
    expect(seen.overdue).toBe(1);
  });

  it('keeps to the soonest of several times', () => {
    const { seen, overdue } = watched();
    overdue.allow(300_000);
    overdue.allow(0);
    overdue.allow(300_000);
    vi.advanceTimersByTime(10_000);
    expect(seen.overdue).toBe(1);
  });
});
