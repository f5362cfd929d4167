import { describe, expect, it } from 'vitest';
import { distributions } from '../fresh-machine/distributions.mjs';
import { machines } from './machines.mjs';
import { testedPage } from './tested-page.mjs';

const two = [
  { name: 'one', runs: 'all tests' },
  { name: 'other', runs: 'all tests' },
];
const entry = {
  commit: 'a'.repeat(40),
  kernel: '6.1.0',
  node: 'v20.20.2',
  engine: '20.10.24+dfsg1',
  date: '2026-11-18T01:02:03.000Z',
  minutes: 42,
  ok: true,
  passed: 2100,
  failed: 0,
  skipped: 0,
  failures: [],
};
const rowOf = (page, machine) => page.split('\n').find((line) => line.startsWith(`| \`${machine}\``));

describe('the page of full runs', () => {
  it('says of a machine without a run that none is recorded', () => {
    const page = testedPage(two, {});
    expect(page).toContain('\nNo full run is recorded yet.\n');
    expect(rowOf(page, 'one')).toContain('| no full run is recorded |');
    expect(rowOf(page, 'other')).toContain('| no full run is recorded |');
  });

  it('has a row for each machine', () => {
    const page = testedPage(two, { one: entry });
    expect(rowOf(page, 'one')).toBe(
      '| `one` | all tests | `aaaaaaaaaa` | 2026-11-18 01:02 | 6.1.0 | 20.10.24+dfsg1 | 20.20.2 | passed | 2100 | 0 | 0 | 42 |',
    );
    expect(rowOf(page, 'other')).toContain('no full run is recorded');
    expect(page).toContain('`aaaaaaaaaa`, 2026-11-18. Every recorded run is of that commit.');
    const columns = page
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .map((line) => line.split('|').length);
    expect(new Set(columns).size).toBe(1);
  });

  it('marks rows of an older commit, and names them above the table', () => {
    const older = { ...entry, commit: 'b'.repeat(40), date: '2026-11-02T00:00:00.000Z' };
    const page = testedPage(two, { one: older, other: entry });
    expect(rowOf(page, 'one')).toContain('| `bbbbbbbbbb` (older) |');
    expect(rowOf(page, 'other')).toContain('| `aaaaaaaaaa` |');
    expect(page).toContain(
      'These runs are of an older commit:\n\n- `one`: commit `bbbbbbbbbb`, 2026-11-02\n',
    );
  });

  it('names what failed, and tells a failed test from a run that failed otherwise', () => {
    const failed = {
      ...entry,
      ok: false,
      failed: 1,
      failures: ['test/a.test.ts: [G5] a `<b>` is_not *bold*'],
    };
    const page = testedPage(two, { one: failed, other: { ...entry, ok: false } });
    expect(rowOf(page, 'one')).toContain('| failed | 2100 | 1 |');
    expect(page).toContain(
      '## Failed on one\n\n- test/a.test.ts: \\[G5\\] a \\`\\<b\\>\\` is\\_not \\*bold\\*\n',
    );
    expect(rowOf(page, 'other')).toContain('| failed outside of the tests |');
    expect(page).not.toContain('Failed on other');
    expect(rowOf(testedPage(two, { one: { ...entry, ok: false, passed: 0 } }), 'one')).toContain(
      '| failed before the tests |',
    );
  });
});

describe('the machines of the full run', () => {
  it('have different names, and each is a known distribution', () => {
    expect(new Set(machines.map(({ name }) => name)).size).toBe(machines.length);
    for (const { distribution } of machines) expect(Object.keys(distributions)).toContain(distribution);
    // Machines with packages of their own have no git, and no checkout that could be tested.
    const withCheckout = Object.keys(distributions).filter((name) => !distributions[name].packages);
    expect(new Set(machines.map(({ distribution }) => distribution))).toEqual(new Set(withCheckout));
  });
});
