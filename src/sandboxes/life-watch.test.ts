import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type LifeHost, LifeWatch } from './life-watch.ts';

const minute = 60_000;

beforeEach(() => void vi.useFakeTimers({ now: Date.parse('2026-11-16T12:00:00Z') }));
afterEach(() => void vi.useRealTimers());

interface Life {
  readonly watch: LifeWatch;
  readonly over: string[];
  alive: boolean;
}

function lifeOf(spec: { readonly idle_ttl?: number | 'never'; readonly max_lifetime?: number }): Life {
  const over: string[] = [];
  const life = { over, alive: false };
  const host: LifeHost = { alive: () => life.alive, over: (why) => over.push(why) };
  const record = { spec, createdAt: new Date().toISOString() };
  return Object.assign(life, { watch: new LifeWatch(() => record, host) });
}

describe('[A16] a sandbox', () => {
  it('without an idle time ends after 30 minutes in which nothing used it, and has no lifetime', () => {
    const life = lifeOf({});
    life.watch.begin();
    vi.advanceTimersByTime(30 * minute - 1);
    expect(life.over).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(life.over).toEqual(['it was not used for 30m']);
  });

  it('is used while something runs in it, and is idle from then on', () => {
    const life = lifeOf({});
    life.alive = true;
    life.watch.begin();
    vi.advanceTimersByTime(500 * minute);
    expect(life.over).toEqual([]);
    life.alive = false;
    vi.advanceTimersByTime(60 * minute);
    expect(life.over).toHaveLength(1);
  });

  it('ends with its lifetime, also while it is used', () => {
    const life = lifeOf({ idle_ttl: 'never', max_lifetime: 40 * 24 * 60 * minute });
    life.alive = true;
    life.watch.begin();
    // Longer than the longest timer of Node.js.
    vi.advanceTimersByTime(40 * 24 * 60 * minute - 1);
    expect(life.over).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(life.over).toEqual(['its lifetime of 40d is over']);
  });
});
