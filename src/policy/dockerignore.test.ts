import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DockerFolder, dockerPatterns, dockerVerdict } from './dockerignore.ts';
import { globMatches } from './glob.ts';

const part = fc.constantFrom('a', 'b', 'ab', '*', '?', 'a*', '**', '[ab]', 'é');
const line = fc
  .tuple(fc.constantFrom('', '!'), fc.array(part, { minLength: 1, maxLength: 3 }))
  .map(([sign, parts]) => sign + parts.join('/'));
const path = fc.array(fc.constantFrom('a', 'b', 'ab', 'é', 'x'), { minLength: 1, maxLength: 4 });

const codes = (names: readonly string[]): number[] =>
  Array.from(names.join('/'), (one) => one.codePointAt(0) ?? 0);

describe('the patterns of a .dockerignore', () => {
  it('give each path the verdict of the last that fits it or a folder above it', () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 5 }), path, (lines, names) => {
        const patterns = dockerPatterns('.dockerignore', lines.join('\n'));
        const last = patterns.findLast(({ glob }) =>
          names.some((_, index) => globMatches(glob, codes(names.slice(0, index + 1)))),
        );
        const isIn = last === undefined || last.negated;
        expect(dockerVerdict(patterns, Buffer.from(names.join('/')), false)).toBe(isIn ? 'in' : 'out');
      }),
      { numRuns: 2000 },
    );
  });

  it('never leave out a folder in which something is in', () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 5 }), path, (lines, names) => {
        const patterns = dockerPatterns('.dockerignore', lines.join('\n'));
        if (dockerVerdict(patterns, Buffer.from(names.join('/')), false) === 'out') return;
        let folder = DockerFolder.root(patterns);
        for (const name of names.slice(0, -1)) {
          expect(folder.verdict(name, true)).not.toBe('out');
          folder = folder.enter(name);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
