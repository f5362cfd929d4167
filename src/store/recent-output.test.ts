import { expect, it } from 'vitest';
import { RecentOutput } from './recent-output.ts';

const text = (value: string): Buffer => Buffer.from(value);

it('shows a reader what was there when it began, though its last run grows and others follow meanwhile', () => {
  const recent = new RecentOutput(100);
  recent.add({ channel: 'stdout', offset: 0, length: 3 }, text('one'));
  const slow = recent.pieces();
  expect(slow.next().value?.data.toString()).toBe('one');
  recent.add({ channel: 'stdout', offset: 3, length: 3 }, text('two'));
  recent.add({ channel: 'stderr', offset: 0, length: 5 }, text('three'));
  expect(slow.next().done).toBe(true);
  const all = [...recent.pieces()].map(({ run, data }) => [run.channel, data.toString()]);
  expect(all).toEqual([
    ['stdout', 'onetwo'],
    ['stderr', 'three'],
  ]);
});
