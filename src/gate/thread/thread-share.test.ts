import { setTimeout as sleepFor } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type ThreadShare, ThreadTime } from './thread-share.ts';

/** A thread in which work takes as long as it says. */
function thread() {
  let busyMs = 0;
  const time = new ThreadTime(() => busyMs);
  const log: string[] = [];
  const work = (share: ThreadShare, name: string, ms: number): void =>
    share.run(() => {
      busyMs += ms;
      log.push(name);
    });
  return { time, log, work };
}

it('[N22] lets one that took more than its share wait, in order, and another one go on', async () => {
  const { time, log, work } = thread();
  const [noisy, quiet] = [time.share(), time.share()];
  work(quiet, 'quiet', 1);
  for (let index = 0; index < 8; index++) work(noisy, `noisy ${index}`, 100);
  // Of its 250 ms, the third begins in time.
  expect(log).toEqual(['quiet', 'noisy 0', 'noisy 1', 'noisy 2']);
  work(quiet, 'quiet again', 1);
  expect(log.at(-1)).toBe('quiet again');
  while (log.length < 7) await sleepFor(10);
  expect(log.slice(5)).toEqual(['noisy 3', 'noisy 4']);
  noisy.end();
  expect(log.slice(7)).toEqual(['noisy 5', 'noisy 6', 'noisy 7']);
});

it('[N22] lets the answers of one that took more than its share wait, and asks for the next ones later', async () => {
  const { time, log, work } = thread();
  const [noisy, quiet] = [time.share(), time.share()];
  work(quiet, 'quiet', 1);
  noisy.handed(() => log.push('first'));
  work(noisy, 'noisy', 300);
  const asked = new Promise<void>((resolve) => noisy.handed(resolve)).then(() => log.push('second'));
  quiet.handed(() => log.push('quiet again'));
  expect(log).toEqual(['quiet', 'first', 'noisy', 'quiet again']);
  await asked;
  expect(log.at(-1)).toBe('second');
});

it('gives one that is alone more than one beside another', () => {
  const counts = [false, true].map((isBeside) => {
    const { time, log, work } = thread();
    const [one, other] = [time.share(), time.share()];
    if (isBeside) work(other, 'other', 0);
    for (let index = 0; index < 20; index++) work(one, 'one', 50);
    return log.filter((name) => name === 'one').length;
  });
  expect(counts).toEqual([12, 6]);
});
