import { describe, expect, it } from 'vitest';
import { leftOutLines, resultsOf } from './test-results.mjs';

describe('the end of a test run', () => {
  it('lists what was left out by the run that includes it', () => {
    const lines = [
      { file: '/clone/test/a.test.ts', name: 'one', runsIn: 'npm test as root' },
      { file: 'test/b.test.ts', name: 'all tests', runsIn: 'npm test' },
      { file: '/clone/test/a.test.ts', name: 'two', runsIn: 'npm test as root' },
    ];
    expect(leftOutLines(lines, '/clone')).toEqual([
      'left out by selection, run by npm test as root:',
      '  test/a.test.ts: one',
      '  test/a.test.ts: two',
      '',
      'left out by selection, run by npm test:',
      '  test/b.test.ts: all tests',
      '',
    ]);
  });

  it('names every test that neither passed nor failed', () => {
    const statuses = ['passed', 'passed', 'failed', 'skipped', 'pending', 'todo'];
    const assertionResults = statuses.map((status, index) => ({ fullName: `t${index}`, status }));
    expect(resultsOf({ testResults: [{ name: '/clone/a.test.ts', assertionResults }] }, '/clone')).toEqual({
      passed: 2,
      failed: 1,
      skipped: ['a.test.ts: t3', 'a.test.ts: t4', 'a.test.ts: t5'],
    });
  });
});
