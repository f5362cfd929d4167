import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { full } from '../../../test/support/requires.ts';
import { evaluateCommand } from './evaluate.ts';

/** The full run looks for new ones. Others repeat the same ones, so that what they find comes from a change. */
const runs = full ? { numRuns: 100_000 } : { numRuns: 3000, seed: 1 };
const mostMs = full ? 1_800_000 : 300_000;

const lines = readFileSync(new URL('./corpus/dangerous.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('# '))
  .map((line) => line.replaceAll('␤', '\n'));

const isSimple = (line: string): boolean =>
  /^[\w./~@%+,: =-]+$/.test(line) &&
  !/^\w+=|^(for|if|while|until|case|select|time|coproc|local|function)\b/.test(line);
/** A program with its words, so that quotes and wrappers can be put anywhere. */
const simple = lines.filter(isSimple);

/** The same word in another spelling. Options and names alike; a tilde or a brace loses its meaning in quotes, so they stay. */
const respell = (word: string) =>
  /[~=]/.test(word) || word === ''
    ? fc.constant(word)
    : fc.constantFrom(
        word,
        `'${word}'`,
        `"${word}"`,
        `${word.slice(0, 1)}''${word.slice(1)}`,
        `${word.slice(0, -1)}"${word.slice(-1)}"`,
        `\\${word}`,
        `$'${[...word].map((letter) => `\\x${letter.charCodeAt(0).toString(16).padStart(2, '0')}`).join('')}'`,
      );

/** A long option without its last letters: the program may still take it. */
const shorten = (word: string) =>
  /^--[a-z][a-z-]{5,}(=|$)/.test(word)
    ? fc.integer({ min: 0, max: 3 }).map((less) => {
        const [name = '', ...value] = word.split('=');
        return [name.slice(0, name.length - less), ...value].join('=');
      })
    : fc.constant(word);

const wrap = fc.constantFrom(
  ...[
    'env %',
    'env -i %',
    'env A=b %',
    'nice %',
    'nice -n 5 %',
    'timeout 5 %',
    'timeout -k 1 5 %',
    'nohup %',
    'stdbuf -oL %',
    'command %',
    'sudo %',
    'sudo -u x -- %',
    'exec %',
    'ionice -c 3 %',
    'xargs %',
  ].map((pattern) => (text: string) => pattern.replace('%', () => text)),
);

const nest = fc.constantFrom(
  ...[
    '%',
    '  %  ',
    '(%)',
    '{ %; }',
    'ls; %',
    '%; ls',
    'true && %',
    'false || %',
    // In braces: the shell leaves a `cd` in the last stage of a pipe behind with that stage.
    'ls | { %; }',
    '! %',
    'if true; then %; fi',
    'if %; then ls; fi',
    'while true; do %; done',
    'for i in 1 2; do %; done',
    'case x in x) %;; esac',
    'echo "$(%)"',
    'cat <(%)',
    'f() { %; }; f',
    'x=$(%)',
    ['echo $', '{x:-$(%)}'].join(''),
    'ls & %',
    'time %',
    'cat <<E\n$(%)\nE',
  ].map((pattern) => (text: string) => pattern.replace('%', () => text)),
);

const unasked = (line: string): boolean => {
  const { route, confirm } = evaluateCommand(line);
  return route === 'host' && !confirm;
};

test(
  '[C1] no dangerous line becomes harmless by nesting or spacing',
  () => {
    const nestable = lines.filter(
      (line) =>
        !/[\n`#]|<<|"unterminated|^if true/.test(line) &&
        evaluateCommand(line).reasons.every(({ text }) => !text.includes('syntax')),
    );
    fc.assert(
      fc.property(fc.constantFrom(...nestable), nest, nest, (line, inner, outer) => {
        const mutant = outer(inner(line));
        expect(unasked(mutant), mutant).toBe(false);
      }),
      runs,
    );
  },
  mostMs,
);

test(
  '[C1] no dangerous line becomes harmless by quotes, abbreviations, wrappers or spaces',
  () => {
    const mutant = fc
      .constantFrom(...simple)
      .chain((line) =>
        fc.tuple(
          fc.tuple(...line.split(' ').map((word) => shorten(word).chain(respell))),
          fc.constantFrom(' ', '  ', '\t', ' \\\n '),
          wrap,
          nest,
        ),
      )
      .map(([words, gap, wrapped, nested]) => {
        const line = words.join(gap);
        // A builtin behind a wrapper is another program; the line itself stays dangerous.
        return [nested(line), nested(wrapped(line))] as const;
      });
    fc.assert(
      fc.property(mutant, ([plain, wrapped]) => {
        expect(unasked(plain), plain).toBe(false);
        expect(unasked(wrapped), wrapped).toBe(false);
      }),
      runs,
    );
  },
  mostMs,
);
