import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { execIdOf, execRecord, sandboxIdOf } from '../../test/support/store-records.ts';
import { ExecJournal } from './exec-journal.ts';

const box = sandboxIdOf(1);

describe('the journal of execs', () => {
  it('has the last word on each, oldest first, whatever a crash left at its end', () => {
    const path = join(temporaryFolder(), 'execs.jsonl');
    const first = new ExecJournal(path, () => {});
    first.save(execRecord(box, 1));
    first.save(execRecord(box, 2));
    first.save(execRecord(box, 1, { state: 'exited', exitCode: 0 }));
    const expected = [execRecord(box, 1, { state: 'exited', exitCode: 0 }), execRecord(box, 2)];
    expect(new ExecJournal(path, () => {}).records).toEqual(expected);
    const whole = readFileSync(path);
    const torn = Buffer.from(JSON.stringify(execRecord(box, 2, { state: 'lost' })));
    for (let length = 0; length <= torn.length; length++) {
      writeFileSync(path, Buffer.concat([whole, torn.subarray(0, length)]));
      expect(new ExecJournal(path, () => {}).records).toEqual(expected);
    }
    // What is written next does not stick to the torn line.
    new ExecJournal(path, () => {}).save(execRecord(box, 3));
    expect(new ExecJournal(path, () => {}).records).toEqual([...expected, execRecord(box, 3)]);
  });

  it('passes over lines that are no records', () => {
    const path = join(temporaryFolder(), 'execs.jsonl');
    new ExecJournal(path, () => {}).save(execRecord(box, 1));
    appendFileSync(path, 'nonsense\n{"id":"ex-aaaaaaaaaaaa"}\n\n');
    const journal = new ExecJournal(path, () => {});
    journal.save(execRecord(box, 2));
    expect(new ExecJournal(path, () => {}).records).toEqual([execRecord(box, 1), execRecord(box, 2)]);
  });

  it('stays bounded in execs and in bytes, and drops the oldest that ended', () => {
    const path = join(temporaryFolder(), 'execs.jsonl');
    const dropped: string[] = [];
    const journal = new ExecJournal(path, ({ id }) => dropped.push(id), { bytes: 20_000, ended: 20 });
    journal.save(execRecord(box, 0));
    for (let seed = 1; seed <= 200; seed++) {
      journal.save(execRecord(box, seed));
      journal.save(execRecord(box, seed, { state: 'exited', argv: ['x'.repeat(seed * 5)] }));
      expect(statSync(path).size).toBeLessThan(22_000);
      expect(journal.records.length).toBeLessThanOrEqual(22);
    }
    const kept = new ExecJournal(path, () => {}).records;
    expect(kept).toEqual(journal.records);
    expect(kept[0]).toEqual(execRecord(box, 0));
    expect(kept.at(-1)?.id).toBe(execIdOf(200));
    expect(kept.length + dropped.length).toBe(201);
    expect(new Set(dropped).size).toBe(dropped.length);
  });

  it('keeps all that run, and does not write them anew for every line', () => {
    const path = join(temporaryFolder(), 'execs.jsonl');
    const journal = new ExecJournal(path, () => expect.unreachable('all of them run'), {
      bytes: 5000,
      ended: 5,
    });
    const inodes = new Set<number>();
    for (let seed = 0; seed < 200; seed++) {
      journal.save(execRecord(box, seed));
      inodes.add(statSync(path).ino);
    }
    expect(new ExecJournal(path, () => {}).records).toHaveLength(200);
    expect(inodes.size).toBeLessThan(10);
  });
});
