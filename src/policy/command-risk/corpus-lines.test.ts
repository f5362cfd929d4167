import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { evaluateCommand } from './evaluate.ts';

const textOf = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');

/** Literal lines; ␤ is the end of a line. */
const linesOf = (name: string): readonly string[] =>
  textOf(`./corpus/${name}`)
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('# '))
    .map((line) => line.replaceAll('␤', '\n'));

/** Different lines below each `# --- section`. */
function sectionSizes(name: string): Readonly<Record<string, number>> {
  const sections = textOf(name)
    .split(/^# --- /m)
    .slice(1);
  return Object.fromEntries(
    sections.map((section) => {
      const [title = '', ...lines] = section.split('\n');
      return [title, new Set(lines.filter((line) => line !== '' && !line.startsWith('# '))).size];
    }),
  );
}

/** A section that grew may shrink to this, and none may go. */
const leastSizes: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  './corpus.txt': {
    reads: 100,
    'writes in this folder': 63,
    'plain fetches': 20,
    sends: 21,
    'changes of the machine': 24,
    installs: 23,
    'runs code': 67,
    'not known': 29,
    'loses data': 113,
  },
  './corpus/dangerous.txt': {
    'variables that steer programs': 89,
    'subscripts and numbers that run code': 57,
    'bash: other ways to run code': 125,
    wrappers: 83,
    sed: 37,
    awk: 32,
    'find and fd': 26,
    git: 148,
    'sort, diff, rg, tar and others that run or write by an option': 315,
    'fetches that send, write or read': 75,
    'writes that other programs execute': 97,
    'restricted paths': 137,
    'loses data, ends processes, changes the machine': 53,
    'more of all kinds': 256,
    'words that may be empty, hidden names, and options that an earlier judge missed': 306,
    'more programs by name': 1843,
    'shells: what they are fed, how sh reads it, arrays that declare expands': 53,
    'sed, awk and sqlite3: labels, ends of lines, quoted functions': 14,
    'versions, environments and repositories that a line unpacks': 35,
    'abbreviations, names that copies and unpacked files get, lost work': 40,
    'secrets: other names, links, searches and lists that find them': 89,
    'more ways of all kinds': 1028,
  },
  './corpus/harmless.txt': {
    'looking around': 62,
    'reading files': 96,
    searching: 39,
    git: 100,
    'work in this folder': 43,
    'the shell itself': 83,
    'the machine': 39,
    'versions and lists': 46,
    'plain fetches': 21,
    'more of all kinds': 243,
    'a working day': 443,
    'more of a working day': 426,
    'globs with an open end, plain pragmas': 7,
  },
};

const unasked = (line: string): boolean => {
  const { route, confirm } = evaluateCommand(line);
  return route === 'host' && !confirm;
};

test('[C1] runs no dangerous line of the corpus on the host unasked', () => {
  const lines = linesOf('dangerous.txt');
  expect(lines.filter(unasked)).toEqual([]);
  expect(new Set(lines).size).toBeGreaterThanOrEqual(500);
});

test('[C1] sends away at most 3 % of the harmless lines of the corpus', () => {
  const lines = linesOf('harmless.txt');
  const away = lines.filter((line) => !unasked(line));
  expect(new Set(lines).size).toBeGreaterThanOrEqual(300);
  expect(
    away
      .map((line) => `${line}: ${evaluateCommand(line).reasons[0]?.text}`)
      .slice(0, away.length / lines.length > 0.03 ? undefined : 0),
  ).toEqual([]);
});

test.each(Object.entries(leastSizes))('[C1] keeps every section of %s with its lines', (name, least) => {
  const sizes = sectionSizes(name);
  expect(Object.keys(sizes)).toEqual(Object.keys(least));
  expect(Object.entries(sizes).filter(([title, size]) => size < (least[title] ?? 0))).toEqual([]);
});
