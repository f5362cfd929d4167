import { describe, expect, it } from 'vitest';
import { bypassProblems, withCounts } from './bypass-rows.mjs';

const marks =
  '<!-- Counts: written by scripts/generate.mjs. Do not edit. -->\nold\n<!-- End of counts. -->\n';
const table = (...rows) =>
  ['| way | state | test |', '| --- | --- | --- |', ...rows.map((row) => `| ${row} |`), ''].join('\n');
const documents = [
  {
    file: 'docs/bypasses-api.md',
    text: `# More\n\n## The API\n\n${table('a token | pass, `auth.test.ts` | ', 'TLS | gap: none | ')}`,
  },
  {
    file: 'docs/bypasses.md',
    text: `# Ways\n\n## Files\n\n${table('a link | pass | `test/files.test.ts`', 'a `x\\|y` | pass | the same')}\n## Counts\n\n${marks}`,
  },
  { file: 'docs/other.md', text: `## Other\n\n${table('not counted | pass | `gone.test.ts`')}` },
];
const paths = ['test/files.test.ts', 'src/daemon/auth.test.ts'];

describe('the rows of docs/bypasses', () => {
  it('are counted for each section and in all, whatever stood there', () => {
    const text = withCounts(documents);
    expect(text).not.toContain('old');
    expect(text.split('\n').filter((line) => /^\| (\[|all)/.test(line))).toEqual([
      '| [Files](#files)                    | 2    | 0   |',
      '| [The API](bypasses-api.md#the-api) | 1    | 1   |',
      '| all                                | 3    | 1   |',
    ]);
    const again = documents.map((one) => (one.file === 'docs/bypasses.md' ? { ...one, text } : one));
    expect(withCounts(again)).toBe(text);
  });

  it('are refused with another state than pass or gap', () => {
    const odd = { file: 'docs/bypasses.md', text: `## Files\n\n${table('x | passed | ', 'y | gap | ')}` };
    expect(bypassProblems([odd], paths)).toEqual([
      { file: 'docs/bypasses.md', line: 5, message: 'the state is neither `pass` nor `gap`' },
    ]);
  });

  it('name tests that are there, by path or by name', () => {
    expect(bypassProblems(documents, paths)).toEqual([]);
    expect(bypassProblems(documents, ['test/other.test.ts']).map(({ message }) => message)).toEqual([
      'names the test test/files.test.ts, which is not there',
      'names the test auth.test.ts, which is not there',
    ]);
  });
});
