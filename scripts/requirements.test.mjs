import { describe, expect, it } from 'vitest';
import { requirementIds } from './mission-report.mjs';
import { documentOf, missingTests, readDocuments, sentenceStates } from './requirements/documents.mjs';
import { requirementsPage } from './requirements/page.mjs';
import { sentenceLines, sentenceReport, sentenceSummary } from './requirements/report.mjs';
import { testSources } from './test-sources.mjs';

const file = 'test/integration/a.test.ts';
const row = (more = '') =>
  documentOf('a.yaml', `title: A\nsentences:\n  - says: It works.\n    id: G1\n    does: It does.\n${more}`);
const proved = row(`    tests:\n      - ${file}: "finds it"\n`);

describe('the sentences of the five documents', () => {
  it('name tests that exist', () => {
    expect(missingTests(readDocuments(), testSources())).toEqual([]);
  });

  it('cover every requirement of the first version', () => {
    const named = new Set(readDocuments().flatMap(({ sentences }) => sentences.flatMap(({ ids }) => ids)));
    expect(requirementIds.filter((id) => !id.startsWith('N') && !named.has(id))).toEqual([]);
  });

  it.each([
    ['a key nobody knows', '    test: x\n', 'unknown key test'],
    ['no test and no reason', '', 'neither tests nor'],
    ['a test without a title', `    tests:\n      - ${file}\n`, 'a test is `file: part of its title`'],
  ])('are refused with %s', (_what, more, why) => {
    expect(() => row(more)).toThrow(`a.yaml 1: ${why}`);
  });

  it('are refused with an unknown id', () => {
    const text = 'title: A\nsentences:\n  - says: x\n    id: G99\n    open: y\n';
    expect(() => documentOf('a.yaml', text)).toThrow('a.yaml 1: unknown id G99');
  });
});

describe('the state of a sentence', () => {
  const stateWith = (document, ...statuses) =>
    sentenceStates(
      [document],
      statuses.map((status) => ({ file, title: 'a sandbox [G1] finds it again', status })),
    )[0].state;

  it('is that of its tests: failed once is failed, and not run is not ok', () => {
    expect(stateWith(proved, 'ok')).toBe('ok');
    expect(stateWith(proved, 'ok', 'failed')).toBe('failed');
    expect(stateWith(proved, 'ok', 'not run')).toBe('not run');
    expect(stateWith(proved)).toBe('not run');
  });

  it('is a difference without tests, and open whatever its tests say', () => {
    expect(stateWith(row('    differs: because\n'))).toBe('differs');
    expect(stateWith(row(`    open: later\n    tests:\n      - ${file}: "finds it"\n`), 'ok')).toBe('open');
  });

  it('is a failure of the report where a test failed or does not exist', () => {
    const states = (status) =>
      sentenceStates([proved], [{ file, title: 'a sandbox [G1] finds it again', status }]);
    expect(sentenceReport(states('ok'), []).ok).toBe(true);
    expect(sentenceReport(states('failed'), []).ok).toBe(false);
    const missing = missingTests([proved], [{ file, text: "it('loses it', () => {});" }]);
    expect(missing).toEqual([{ place: 'a.yaml 1', file, title: 'finds it' }]);
    const report = sentenceReport(states('ok'), missing);
    expect(report.ok).toBe(false);
    expect(sentenceLines(report)).toEqual([
      '  ok      a.yaml 1 [G1] It works.',
      `  FAIL    a.yaml 1: no test "finds it" in ${file}`,
    ]);
    expect(sentenceSummary(report)).toBe(
      'sentences: 1 ok, 0 failed, 0 not run, 0 differ, 0 open; 1 named tests do not exist',
    );
  });

  it('finds a test whose source escapes a quote', () => {
    const document = row(`    tests:\n      - ${file}: "finds the user's"\n`);
    expect(missingTests([document], [{ file, text: "it('finds the user\\'s folder', f)" }])).toEqual([]);
  });
});

describe('the page of requirements', () => {
  it('has a row for each sentence, and lists differences and what is open', () => {
    const page = requirementsPage([proved, row('    differs: a|b\n'), row('    open: not built\n')]);
    expect(page).toContain(`| 1 | It works. | G1 | It does. | \`${file}\`: finds it |`);
    expect(page).toContain('**Differs:** a\\|b');
    expect(page).toContain('- A, 1: a|b');
    expect(page).toContain('- A, 1: not built');
  });
});
