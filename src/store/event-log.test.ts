import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import type { EventDraft, SallyEvent } from '../protocol/events.ts';
import { EventLogFiles, type EventLogLimits } from './event-log.ts';

function open(folder: string, limits?: EventLogLimits): EventLogFiles {
  const log = new EventLogFiles(folder, limits);
  onTestFinished(() => log.close());
  return log;
}

const note = (message: string): EventDraft => ({
  type: 'sandbox.note',
  sandbox_id: 'sb-aaaaaaaaaa',
  code: 'test',
  message,
});

/** The next events, so many of them. */
async function take(log: EventLogFiles, since: number, count: number): Promise<SallyEvent[]> {
  const got: SallyEvent[] = [];
  if (count === 0) return got;
  for await (const event of log.follow(since, new AbortController().signal)) {
    got.push(event);
    if (got.length === count) break;
  }
  return got;
}

const numbers = (events: readonly SallyEvent[]): number[] => events.map((event) => event.sequence);
const upTo = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, place) => from + place);
const tiny: EventLogLimits = { fileBytes: 600, files: 3 };

describe('the event log', () => {
  it('[A15] numbers events from 1, tells them to who follows, and goes on after a restart', async () => {
    const folder = temporaryFolder();
    const first = open(folder);
    expect(first.sequence).toBe(0);
    const heard = take(first, 0, 3);
    const appended = ['a', 'b', 'c'].map((message) => first.append(note(message)));
    expect(await heard).toEqual(appended);
    expect(numbers(appended)).toEqual([1, 2, 3]);
    first.close();
    const second = open(folder);
    expect(second.sequence).toBe(3);
    expect(second.append(note('d')).sequence).toBe(4);
    expect(numbers(await take(second, 1, 3))).toEqual([2, 3, 4]);
  });

  it('[A15] has an event on disk before anybody hears of it', () => {
    const folder = temporaryFolder();
    const log = open(folder);
    const event = log.append(note('a'));
    const [file = ''] = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
    expect(file).toBe('000000000001.jsonl');
    expect(JSON.parse(readFileSync(join(folder, file), 'utf8'))).toEqual(event);
  });

  it('keeps the newest files only, and says that what was asked for is gone', async () => {
    const log = open(temporaryFolder(), tiny);
    for (let count = 0; count < 40; count++) log.append(note(`number ${count}`));
    expect(() => log.follow(0, new AbortController().signal)).toThrow(
      expect.objectContaining({ code: 'events_gone' }),
    );
    const oldest = oldestOf(() => log.follow(0, new AbortController().signal));
    expect(oldest).toBeGreaterThan(20);
    expect(numbers(await take(log, oldest - 1, 41 - oldest))).toEqual(upTo(oldest, 40));
    expect(numbers(await take(log, 39, 1))).toEqual([40]);
  });

  it('refuses a number that it never gave out', () => {
    const log = open(temporaryFolder());
    log.append(note('a'));
    for (const since of [2, 1e9, -1, 0.5, Number.NaN]) {
      expect(() => log.follow(since, new AbortController().signal)).toThrow(
        expect.objectContaining({ code: 'events_ahead' }),
      );
    }
  });

  it('cuts a torn last line off, wherever it is torn', () => {
    const folder = temporaryFolder();
    const path = join(folder, '000000000001.jsonl');
    const first = open(folder);
    first.append(note('one'));
    const whole = readFileSync(path).length;
    first.append(note('zwei … ü'));
    first.close();
    const all = readFileSync(path);
    for (let length = whole; length < all.length; length++) {
      writeFileSync(path, all.subarray(0, length));
      const log = new EventLogFiles(folder);
      expect(log.sequence).toBe(1);
      expect(log.append(note('again')).sequence).toBe(2);
      log.close();
      expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(3);
    }
  });

  it('cuts off what is whole but no event, as a machine without power leaves it', () => {
    const folder = temporaryFolder();
    const path = join(folder, '000000000001.jsonl');
    const first = open(folder);
    first.append(note('one'));
    first.close();
    const before = readFileSync(path, 'utf8');
    appendFileSync(path, `${'\0'.repeat(100)}\n{"sequence":2,"at":\n\0\0\0`);
    expect(open(folder).sequence).toBe(1);
    expect(readFileSync(path, 'utf8')).toBe(before);
  });

  it('never gives a number twice, even if the newest file is lost; who missed something is told', async () => {
    const folder = temporaryFolder();
    const first = open(folder, tiny);
    for (let count = 0; count < 30; count++) first.append(note(`number ${count}`));
    first.close();
    const newest =
      readdirSync(folder)
        .filter((name) => name.endsWith('.jsonl'))
        .sort()
        .at(-1) ?? '';
    rmSync(join(folder, newest));
    const second = open(folder, tiny);
    expect(second.sequence).toBeGreaterThanOrEqual(30);
    const next = second.append(note('after')).sequence;
    expect(next).toBeGreaterThan(30);
    expect(numbers(await take(second, next - 1, 1))).toEqual([next]);
    await expect(take(second, Number.parseInt(newest, 10) - 2, 5)).rejects.toMatchObject({
      code: 'events_gone',
    });
  });

  it('lets a reader be as slow as it likes, and tells it when it was too slow', async () => {
    const log = open(temporaryFolder(), tiny);
    log.append(note('first'));
    const slow = log.follow(0, new AbortController().signal);
    expect((await slow.next()).value?.sequence).toBe(1);
    // More than is kept, on disk and in memory.
    for (let count = 0; count < 400; count++) log.append(note(`number ${count}`));
    const rest: number[] = [];
    await expect(
      (async () => {
        for await (const event of slow) rest.push(event.sequence);
      })(),
    ).rejects.toMatchObject({ code: 'events_gone' });
    // What it had begun to read it reads to its end.
    expect(rest).toEqual(upTo(2, rest.length + 1));
  });

  it('brings a reader that fell behind what was missed from the disk, and then the rest from memory', async () => {
    const log = open(temporaryFolder());
    log.append(note('first'));
    const slow = log.follow(0, new AbortController().signal);
    expect((await slow.next()).value?.sequence).toBe(1);
    for (let count = 0; count < 600; count++) log.append(note(`number ${count}`));
    const rest: number[] = [];
    for await (const event of slow) {
      rest.push(event.sequence);
      // It falls behind once more, now while it reads the file.
      if (rest.length === 100) for (let count = 0; count < 600; count++) log.append(note(`later ${count}`));
      if (rest.length === 1200) break;
    }
    expect(rest).toEqual(upTo(2, 1201));
  });

  it('gives readers in memory what a reader of the files gets', async () => {
    const log = open(temporaryFolder());
    const huge = 'x'.repeat(300_000);
    const heard = take(log, 0, 3);
    log.append(note('one'));
    log.append(note(huge));
    log.append(note('three'));
    const fromFiles = take(log, 0, 3);
    expect(await heard).toEqual(await fromFiles);
  });

  it('follows over the border of files', async () => {
    const log = open(temporaryFolder(), { fileBytes: 600, files: 100 });
    const heard = take(log, 0, 200);
    for (let count = 0; count < 100; count++) log.append(note(`number ${count}`));
    const later = take(log, 50, 150);
    for (let count = 0; count < 100; count++) log.append(note(`number ${count}`));
    expect(numbers(await heard)).toEqual(upTo(1, 200));
    expect(numbers(await later)).toEqual(upTo(51, 200));
  });

  it('ends a reader that is aborted or left while it waits, and all of them when it is closed', async () => {
    const log = open(temporaryFolder());
    log.append(note('a'));
    const abort = new AbortController();
    const aborted = log.follow(1, abort.signal).next();
    const left = log.follow(1, new AbortController().signal);
    const waiting = left.next();
    const closing = log.follow(1, new AbortController().signal).next();
    abort.abort();
    await left.return?.();
    log.close();
    for (const end of [aborted, waiting, closing])
      expect(await end).toEqual({ done: true, value: undefined });
  });

  it('[A16] opens 100,000 events in a moment, and reads them all', { timeout: 120_000 }, async () => {
    const folder = temporaryFolder();
    const first = open(folder);
    for (let count = 0; count < 100_000; count++) first.append(note(`this is note number ${count}`));
    first.close();
    const from = performance.now();
    const log = open(folder);
    const openMs = performance.now() - from;
    expect(log.sequence).toBe(100_000);
    expect(openMs).toBeLessThan(1000);
    expect(numbers(await take(log, 99_000, 1000))).toEqual(upTo(99_001, 100_000));
    expect((await take(log, 0, 100_000)).length).toBe(100_000);
  });

  it('takes no event once it is closed', () => {
    const log = open(temporaryFolder());
    log.append(note('a'));
    log.close();
    expect(() => log.append(note('b'))).toThrow(expect.objectContaining({ code: 'state_failed' }));
    expect(log.sequence).toBe(1);
  });
});

function oldestOf(follow: () => unknown): number {
  try {
    follow();
  } catch (error) {
    return (error as { details: { oldest: number } }).details.oldest;
  }
  throw new Error('nothing is gone');
}
