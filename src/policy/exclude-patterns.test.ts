import { describe, expect, it } from 'vitest';
import { ExcludeRules } from './exclude-patterns.ts';

const none = Buffer.alloc(0);
const verdict = (rules: ExcludeRules, path: string): string => {
  const isFolder = path.endsWith('/');
  return rules.verdict(Buffer.from(isFolder ? path.slice(0, -1) : path), isFolder);
};
const by = (patterns: readonly string[]): ExcludeRules => ExcludeRules.of({ patterns, from: [] });
const byFile = (name: string, content: string): ExcludeRules =>
  by([]).withFile(none, name, Buffer.from(content));

describe('[A5] exclude_patterns are in the syntax of git', () => {
  it.each([
    ['*.log', 'a/b.log', 'out'],
    ['*.log', 'a/b.logs', 'in'],
    ['/*.log', 'a/b.log', 'in'],
    ['/*.log', 'b.log', 'out'],
    ['build', 'src/build/', 'out'],
    ['build/', 'src/build/', 'out'],
    ['build/', 'src/build', 'in'],
    ['src/build', 'src/build', 'out'],
    ['src/build', 'a/src/build', 'in'],
    ['**/src/build', 'a/b/src/build', 'out'],
    ['a/**/b', 'a/b', 'out'],
    ['a/**/b', 'a/x/y/b', 'out'],
    ['a/**', 'a/', 'in'],
    ['a/**', 'a/x', 'out'],
    ['a/*', 'a/x/y', 'in'],
    ['fo?', 'foo', 'out'],
    ['[a-c]x', 'bx', 'out'],
    ['[!a-c]x', 'bx', 'in'],
    ['[^a-c]x', 'dx', 'out'],
    ['[[:digit:]]', '7', 'out'],
    ['[]-]', ']', 'out'],
    ['[a', '[a', 'in'],
    ['\\!x', '!x', 'out'],
    ['\\#x', '#x', 'out'],
    ['a\\*', 'a*', 'out'],
    ['a\\*', 'ab', 'in'],
    ['a\\', 'a\\', 'in'],
    ['?', 'é', 'in'],
    ['??', 'é', 'out'],
  ])('%s and %s: %s', (pattern, path, expected) => {
    expect(verdict(by([pattern]), path)).toBe(expected);
  });

  it('lets the last pattern that is about a path decide', () => {
    const rules = by(['*.log', '!keep.log', 'deep/keep.log']);
    expect(verdict(rules, 'a.log')).toBe('out');
    expect(verdict(rules, 'keep.log')).toBe('in');
    expect(verdict(rules, 'deep/keep.log')).toBe('out');
  });

  it('takes names that are not UTF-8', () => {
    const rules = by(['*.bin']);
    expect(rules.verdict(Buffer.from([0xff, 0xfe, ...Buffer.from('.bin')]), false)).toBe('out');
    expect(rules.verdict(Buffer.from([0xff, 0xfe]), false)).toBe('in');
  });

  it('stays fast with a pattern that was made to be slow', () => {
    const rules = by([`${'*a'.repeat(200)}b`, `${'**/'.repeat(200)}b`, `/${'*'.repeat(500)}x`]);
    const began = performance.now();
    expect(verdict(rules, 'a'.repeat(1000))).toBe('in');
    expect(performance.now() - began).toBeLessThan(1000);
  });
});

describe('[A5] a .gitignore', () => {
  it('has comments, trailing spaces, carriage returns and a byte order mark', () => {
    const rules = byFile('.gitignore', '\uFEFF# a\r\nb  \r\nc\\ \r\n\r\n\\#d');
    expect(['# a', 'b', 'c ', 'c', '#d'].map((name) => verdict(rules, name))).toEqual([
      'in',
      'out',
      'out',
      'in',
      'out',
    ]);
  });

  it('counts in the folder that it lies in, before those above it and after the patterns of the spec', () => {
    const rules = by(['!wanted.tmp'])
      .withFile(none, '.gitignore', Buffer.from('*.tmp\n/top\n'))
      .withFile(Buffer.from('sub'), '.gitignore', Buffer.from('!b.tmp\n/inner\n'));
    expect(verdict(rules, 'sub/a.tmp')).toBe('out');
    expect(verdict(rules, 'sub/b.tmp')).toBe('in');
    expect(verdict(rules, 'sub/wanted.tmp')).toBe('in');
    expect(verdict(rules, 'sub/inner')).toBe('out');
    expect(verdict(rules, 'sub/x/inner')).toBe('in');
    expect(verdict(rules, 'sub/top')).toBe('in');
  });
});

describe('[A5] a .dockerignore is in the syntax of Docker', () => {
  it.each([
    ['*.md', 'README.md', 'out'],
    ['*.md', 'docs/README.md', 'in'],
    ['**/*.md', 'docs/a/README.md', 'out'],
    ['**/*.md', 'README.md', 'out'],
    ['*/temp*', 'a/temporary.txt', 'out'],
    ['*/temp*', 'temporary.txt', 'in'],
    ['*/*/temp*', 'a/b/temporary/', 'out'],
    ['temp?', 'tempa', 'out'],
    ['temp?', 'temp', 'in'],
    ['node_modules', 'node_modules/', 'out'],
    ['node_modules', 'node_modules/a/b', 'out'],
    ['node_modules', 'a/node_modules/', 'in'],
    ['/foo/bar/', 'foo/bar', 'out'],
    ['./foo/../bar', 'bar', 'out'],
    ['foo/**', 'foo/', 'in'],
    ['foo/**', 'foo/a/b', 'out'],
    ['**', 'anything/at/all', 'out'],
    ['# no', '# no', 'in'],
    [' # yes', '# yes', 'out'],
    ['  spaced  ', 'spaced', 'out'],
    ['[a-c].txt', 'b.txt', 'out'],
    ['[^a-c].txt', 'b.txt', 'in'],
    ['a\\*b', 'a*b', 'out'],
    ['?', 'é', 'out'],
    ['a+b(c)', 'a+b(c)', 'out'],
    ['*.md\n!README.md', 'README.md', 'in'],
    ['*.md\n!README*.md\nREADME-secret.md', 'README-secret.md', 'out'],
    ['*.md\nREADME-secret.md\n!README*.md', 'README-secret.md', 'in'],
    ['docs\n!docs/keep', 'docs/', 'look'],
    ['docs\n!docs/keep', 'docs/keep', 'in'],
    ['docs\n!docs/keep', 'docs/other', 'out'],
    ['docs\n!src/keep', 'docs/', 'out'],
    ['docs\n!**/keep', 'docs/', 'look'],
    ['docs\n!docs/*/keep', 'docs/a/', 'look'],
    ['docs\n!docs/a/keep', 'docs/b/', 'out'],
    ['*\n!src', 'src/a', 'in'],
    ['*\n!src', 'lib/', 'out'],
    ['..', 'a', 'in'],
  ])('%j and %s: %s', (content, path, expected) => {
    expect(verdict(byFile('.dockerignore', content), path)).toBe(expected);
  });

  it.each(['[', 'a\\', '!', '[]', '[a-', '[-a]'])('names the line of %j, which is no pattern', (pattern) => {
    expect(() => byFile('.dockerignore', `a\n${pattern}\n`)).toThrow('.dockerignore, line 2');
  });
});
