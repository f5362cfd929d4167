/**
 * The rows of `docs/bypasses*.md`: how many ways are closed by a test (`pass`) and how many are known and open (`gap`), for each
 * section and in all. Pure: it is handed the documents and the paths of the repository.
 */

import { parseMarkdown, slugOf } from './markdown.mjs';

/** Has the table of the counts, between these. */
export const countsFile = 'docs/bypasses.md';
const begin = '<!-- Counts: written by scripts/generate.mjs. Do not edit. -->';
const end = '<!-- End of counts. -->';

const isBypasses = ({ file }) => /^docs\/bypasses(-[a-z]+)?\.md$/.test(file);

/** Each section with such rows, in the order of the files: `{ file, title, rows: [{ line, state, cells }] }`. */
function sectionsOf(documents) {
  return documents
    .filter(isBypasses)
    .sort((a, b) => a.file.length - b.file.length || a.file.localeCompare(b.file))
    .flatMap(({ file, text }) => {
      const { headings, tables } = parseMarkdown(text);
      const sections = headings.map((heading) => ({ file, ...heading, rows: [] }));
      for (const { line, header, rows } of tables) {
        const column = header.indexOf('state');
        const section = sections.findLast((one) => one.line < line);
        if (column < 0 || section === undefined) continue;
        section.rows.push(...rows.map((row) => ({ ...row, state: stateOf(row.cells[column] ?? '') })));
      }
      return sections.filter(({ rows }) => rows.length > 0);
    });
}

const stateOf = (cell) => /^(pass|gap)\b/.exec(cell)?.[1];

/** Rows that count as neither, and names of test files that are not there. */
export function bypassProblems(documents, paths) {
  const names = new Set(paths.map((path) => path.split('/').at(-1)));
  return sectionsOf(documents).flatMap(({ file, rows }) =>
    rows.flatMap(({ line, state, cells }) => [
      ...(state === undefined ? [{ file, line, message: 'the state is neither `pass` nor `gap`' }] : []),
      ...[...cells.join(' ').matchAll(/[\w./-]+\.test\.(?:ts|mjs)\b/g)]
        .filter(([test]) => !(test.includes('/') ? paths.includes(test) : names.has(test)))
        .map(([test]) => ({ file, line, message: `names the test ${test}, which is not there` })),
    ]),
  );
}

/** `countsFile` with the counts of all documents between its marks. */
export function withCounts(documents) {
  const { text } = documents.find(({ file }) => file === countsFile);
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${countsFile} has no place for the counts: ${begin} … ${end}`);
  return `${text.slice(0, from)}${begin}\n\n${countsTable(documents)}\n\n${text.slice(to)}`;
}

function countsTable(documents) {
  const sections = sectionsOf(documents).map(({ file, title, rows }) => {
    const place = `${file === countsFile ? '' : file.replace('docs/', '')}#${slugOf(title)}`;
    return [`[${title}](${place})`, countOf(rows, 'pass'), countOf(rows, 'gap')];
  });
  const sum = (column) => sections.reduce((total, row) => total + row[column], 0);
  return aligned([['section', 'pass', 'gap'], ...sections, ['all', sum(1), sum(2)]]);
}

const countOf = (rows, wanted) => rows.filter(({ state }) => state === wanted).length;

/** As the formatter of Markdown has it: every column as wide as its widest cell. */
function aligned([header, ...rows]) {
  const all = [header, ...rows].map((row) => row.map(String));
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column].length)));
  const [first, ...rest] = all.map((row) => row.map((cell, column) => cell.padEnd(widths[column])));
  return [first, widths.map((width) => '-'.repeat(width)), ...rest]
    .map((row) => `| ${row.join(' | ')} |`)
    .join('\n');
}
