import { describe, expect, it } from 'vitest';
import { entryOf, factsIn, withEntry } from './record.mjs';

const facts = { commit: 'c'.repeat(40), kernel: '6.1.0', node: 'v20.20.2', engine: '20.10.24' };
const file = (name, tests, status = 'passed') => ({
  name: `/root/sallyport/${name}`,
  status,
  assertionResults: Object.entries(tests).map(([fullName, one]) => ({ fullName, status: one })),
});
const ended = { facts, date: new Date('2026-11-18T01:02:03Z'), minutes: 41.6 };

describe('the facts of a run', () => {
  it('are read from the lines that begin.sh prints', () => {
    const log = `made debian-12\nlane-commit ${facts.commit}\nlane-kernel 6.1.0\nlane-node v20.20.2\n`;
    expect(factsIn(`${log}…\nlane-engine 20.10.24\n`)).toEqual(facts);
    expect(factsIn(log)).toEqual({ ...facts, engine: 'none' });
  });

  it('are undefined where the machine never ran its script', () => {
    expect(factsIn('sally: a fresh machine needs root\n')).toBeUndefined();
  });
});

describe('an entry of the record', () => {
  it('has the facts, the counts and the names of failed tests', () => {
    const report = {
      testResults: [
        file('src/a.test.ts', { one: 'passed', two: 'failed', three: 'skipped' }, 'failed'),
        file('test/sallyport/b.test.ts', { ' four': 'passed', five: 'todo' }),
      ],
    };
    expect(entryOf({ ...ended, report, code: 1 })).toEqual({
      ...facts,
      date: '2026-11-18T01:02:03.000Z',
      minutes: 42,
      ok: false,
      passed: 2,
      failed: 1,
      skipped: 2,
      failures: ['src/a.test.ts: two'],
    });
  });

  it('counts a file that failed outside of its tests', () => {
    const report = { testResults: [file('src/a.test.ts', { one: 'passed' }, 'failed')] };
    expect(entryOf({ ...ended, report, code: 1 })).toMatchObject({
      ok: false,
      failed: 1,
      failures: ['src/a.test.ts: failed outside of its tests'],
    });
  });

  it('is ok only with tests that passed and an exit code of 0', () => {
    const report = { testResults: [file('src/a.test.ts', { one: 'passed' })] };
    expect(entryOf({ ...ended, report, code: 0 }).ok).toBe(true);
    expect(entryOf({ ...ended, report, code: 1 })).toMatchObject({ ok: false, failed: 0 });
    expect(entryOf({ ...ended, report: undefined, code: 0 })).toMatchObject({ ok: false, passed: 0 });
  });

  it('replaces the entry of its machine and no other', () => {
    expect(withEntry({ a: 1, b: 2 }, 'b', 3)).toEqual({ a: 1, b: 3 });
    expect(withEntry({ a: 1 }, 'b', 3)).toEqual({ a: 1, b: 3 });
  });
});
