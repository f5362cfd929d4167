import { describe, expect, it } from 'vitest';
import { idsOf, missionLines, missionReport, requirementIds, titlesIn } from './mission-report.mjs';

/** A report of vitest: file to the titles and statuses of its tests. */
const run = (files, root = '/clone') => ({
  testResults: Object.entries(files).map(([file, tests]) => ({
    name: `${root}/${file}`,
    status: Object.values(tests).includes('failed') ? 'failed' : 'passed',
    message: '',
    assertionResults: Object.entries(tests).map(([fullName, status]) => ({ fullName, status })),
  })),
});

/** Test files that carry these titles, one `it` each. */
const sourcesOf = (files) =>
  Object.entries(files).map(([file, titles]) => ({
    file,
    text: titles.map((title) => `it('${title}', () => {});`).join('\n'),
  }));

const everyFirst = requirementIds.filter((id) => !id.startsWith('N'));
const allTitles = everyFirst.map((id) => `[${id}] works`);
const allPassed = Object.fromEntries(allTitles.map((title) => [title, 'passed']));
const all = {
  sources: sourcesOf({ 'src/all.test.ts': allTitles }),
  runs: [run({ 'src/all.test.ts': allPassed })],
};
const allWith = (more) => ({
  sources: [...all.sources, ...(more.sources ?? [])],
  runs: [...all.runs, ...more.runs],
});
const of = (report, id) => report.requirements.find((one) => one.id === id);

describe('the requirements', () => {
  it('are 54 of the first version and 23 of the second', () => {
    expect(everyFirst).toHaveLength(54);
    expect(requirementIds.filter((id) => id.startsWith('N'))).toHaveLength(23);
  });

  it('are read out of titles, several in one, and nothing else in brackets', () => {
    expect(idsOf('a box [A11][O3] is sealed [G99] [x]')).toEqual(['A11', 'O3']);
    expect(idsOf('[G1, G2] both')).toEqual(['G1', 'G2']);
    expect(idsOf('[G12] is not the first')).toEqual(['G12']);
  });

  it('are found in sources by string literals that begin with them, not by comments', () => {
    const source = `/** [R11] a comment's word */\nit.each([1])('[G3] takes %s', f);\ndescribe.runIf(a)(\n  "[R6] it's",`;
    expect(titlesIn(source)).toEqual(['[G3] takes %s', "[R6] it's"]);
  });
});

describe('a report', () => {
  it('is ok where every requirement of the first version has a test that passed, and lists the others', () => {
    const report = missionReport(all);
    expect(report.ok).toBe(true);
    expect(report.counts).toEqual({
      requirements: { ok: 54, failed: 0, notRun: 0, withoutTest: 0, notBuilt: 23 },
      tests: { ok: 54, failed: 0, notRun: 0 },
    });
    expect(missionLines(report).slice(-3)).toEqual([
      `not built yet: ${requirementIds.filter((id) => id.startsWith('N')).join(' ')}`,
      'without a test: none',
      'requirements: 54 ok, 0 failed, 0 not run, 0 without a test, 23 not built yet; tests: 54 ok, 0 failed, 0 not run',
    ]);
  });

  it.each(['skipped', 'pending', 'todo'])('tells a %s test from a failed one, and is ok', (status) => {
    const report = missionReport(allWith({ runs: [run({ 'test/a.test.ts': { '[G1] waits': status } })] }));
    expect(report.ok).toBe(true);
    expect(of(report, 'G1').tests).toContainEqual({
      file: '/clone/test/a.test.ts',
      title: '[G1] waits',
      status: 'not run',
    });
    expect(missionLines(report)).toContain('  not run  [G1] waits (/clone/test/a.test.ts)');
  });

  it('is not ok where a test failed, also one of no requirement', () => {
    for (const title of ['[G1] breaks', 'breaks']) {
      const report = missionReport(allWith({ runs: [run({ 'test/a.test.ts': { [title]: 'failed' } })] }));
      expect(report.ok).toBe(false);
      expect(report.counts.tests.failed).toBe(1);
      expect(missionLines(report).join('\n')).toContain(`FAIL     ${title}`);
    }
  });

  it('is not ok where a requirement of the first version has no test, and names it', () => {
    const [first, ...rest] = allTitles;
    const report = missionReport({
      sources: sourcesOf({ 'src/all.test.ts': rest }),
      runs: [run({ 'src/all.test.ts': Object.fromEntries(rest.map((title) => [title, 'passed'])) })],
    });
    expect(first).toBe('[G1] works');
    expect(report).toMatchObject({ ok: false, withoutTest: ['G1'] });
    expect(missionLines(report)).toContain('without a test: G1');
  });

  it('says of a test that the sources have and no run knows that it was not run', () => {
    const sources = sourcesOf({ 'test/b.test.ts': ['[N2] answers at once', '[N3] %s is kept'] });
    const runs = [run({ 'test/b.test.ts': { '[N3] a file is kept': 'passed' } })];
    const report = missionReport(allWith({ sources, runs }));
    expect(report.ok).toBe(true);
    expect(of(report, 'N2')).toEqual({
      id: 'N2',
      state: 'not run',
      tests: [{ file: 'test/b.test.ts', title: '[N2] answers at once', status: 'not run' }],
    });
    expect(of(report, 'N3')).toMatchObject({ state: 'ok', tests: [{ title: '[N3] a file is kept' }] });
    expect(report.notBuilt).not.toContain('N2');
  });

  it('joins lanes, also of other clones: passed once is ok, failed once is failed', () => {
    const file = 'test/c.test.ts';
    const sources = sourcesOf({ [file]: ['[N4] one', '[N5] other'] });
    const lanes = [
      run({ [file]: { '[N4] one': 'skipped', '[N5] other': 'passed' } }),
      run({ [file]: { '[N4] one': 'passed', '[N5] other': 'failed' } }, '/elsewhere'),
      run({ [file]: { '[N4] one': 'skipped', '[N5] other': 'skipped' } }),
    ];
    const report = missionReport(allWith({ sources, runs: lanes }));
    expect(of(report, 'N4')).toMatchObject({ state: 'ok', tests: [{ status: 'ok' }] });
    expect(of(report, 'N5')).toMatchObject({ state: 'failed', tests: [{ status: 'failed' }] });
    expect(report.ok).toBe(false);
  });

  it('counts a file that failed outside of its tests for every requirement in it', () => {
    const broken = {
      name: '/clone/test/d.test.ts',
      status: 'failed',
      message: 'no engine\n at x',
      assertionResults: [],
    };
    const report = missionReport(
      allWith({ sources: sourcesOf({ 'test/d.test.ts': ['[N6] asks'] }), runs: [{ testResults: [broken] }] }),
    );
    expect(report.ok).toBe(false);
    expect(of(report, 'N6').tests[0]).toEqual({
      file: 'test/d.test.ts',
      title: 'test/d.test.ts failed outside of its tests: no engine',
      status: 'failed',
    });
  });
});
