import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { evaluateCommand } from './evaluate.ts';

/** Literal lines; ␤ is the end of a line. */
const linesOf = (name: string): readonly string[] =>
  readFileSync(new URL(`./corpus/${name}`, import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('# '))
    .map((line) => line.replaceAll('␤', '\n'));

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
