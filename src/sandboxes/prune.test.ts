import { describe, expect, it } from 'vitest';
import { label, ownedLabels } from '../protocol/labels.ts';
import type { KnownVolume } from './ports.ts';
import { volumeReason } from './prune.ts';

const nowMs = Date.parse('2026-11-16T12:00:00Z');
const isKnown = (id: string): boolean => id === 'sb-here';

const porter = (createdAt: string, more: Partial<KnownVolume> = {}): KnownVolume => ({
  name: 'sallyport-porter-x',
  labels: ownedLabels('porter'),
  createdAt,
  isCurrent: false,
  ...more,
});

describe('[R5] why a volume goes', () => {
  it.each<[string, KnownVolume, number | undefined, boolean]>([
    ['an old porter', porter('2026-11-01T12:00:00Z'), undefined, true],
    ['the porter of this program', porter('2026-11-01T12:00:00Z', { isCurrent: true }), undefined, false],
    ['a porter of three days', porter('2026-11-13T12:00:00Z'), undefined, false],
    ['a porter of three days, asked for by age', porter('2026-11-13T12:00:00Z'), 172_800_000, true],
    ['a porter of an hour, whatever age is asked for', porter('2026-11-16T11:00:00Z'), 1, false],
    ['a porter of no known age', porter(''), 1, false],
    [
      'a cache of another kind',
      porter('2020-01-01T00:00:00Z', { labels: ownedLabels('build-turn') }),
      1,
      false,
    ],
    [
      'one whose sandbox is gone',
      porter('', { labels: ownedLabels('sandbox', { [label.owner]: 'me', [label.id]: 'sb-gone' }) }),
      undefined,
      true,
    ],
    [
      'one whose sandbox is here',
      porter('', { labels: ownedLabels('sandbox', { [label.owner]: 'me', [label.id]: 'sb-here' }) }),
      undefined,
      false,
    ],
    [
      'one of no sandbox',
      porter('', { labels: ownedLabels('build-turn', { [label.owner]: 'me' }) }),
      1,
      false,
    ],
  ])('%s', (_what, volume, olderThanMs, goes) => {
    expect(volumeReason(volume, isKnown, nowMs, olderThanMs) !== undefined).toBe(goes);
  });
});
