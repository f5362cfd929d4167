import { describe, expect, it } from 'vitest';
import { CopiedExcludes, type PatternFile } from './copied-excludes.ts';

const file = (folder: string, name: string, content: string): PatternFile => ({
  folder: Buffer.from(folder),
  name,
  content: Buffer.from(content),
});

const ask = (excludes: CopiedExcludes, path: string): string => {
  const isFolder = path.endsWith('/');
  return excludes.verdict(Buffer.from(isFolder ? path.slice(0, -1) : path), isFolder);
};

describe('[A5] what was left out of a copy', () => {
  it('is told of any path, in any order, with all that is below a folder that was left out', () => {
    const excludes = new CopiedExcludes({ patterns: ['node_modules/', '!keep.log'], from: [] }, []);
    expect(ask(excludes, 'a/node_modules/deep/x')).toBe('out');
    expect(ask(excludes, 'a/node_modules/')).toBe('out');
    expect(ask(excludes, 'a/node_modules')).toBe('in');
    expect(ask(excludes, 'a/other/x')).toBe('in');
  });

  it('goes by the files of patterns of every folder above it, the nearest one first', () => {
    const from = ['.gitignore'];
    const excludes = new CopiedExcludes({ patterns: [], from }, [
      file('', '.gitignore', '*.log\nbuild/\n'),
      file('sub', '.gitignore', '!*.log\nlocal\n'),
      // Of a folder that is left out nothing counts.
      file('build', '.gitignore', '!*\n'),
    ]);
    expect(ask(excludes, 'x.log')).toBe('out');
    expect(ask(excludes, 'sub/x.log')).toBe('in');
    expect(ask(excludes, 'sub/deeper/local')).toBe('out');
    expect(ask(excludes, 'local')).toBe('in');
    expect(ask(excludes, 'build/x')).toBe('out');
  });

  it('knows a folder of which only single things were copied', () => {
    const excludes = new CopiedExcludes({ patterns: [], from: ['.dockerignore'] }, [
      file('', '.dockerignore', 'docs\n!docs/deep/two.md\n'),
    ]);
    expect(ask(excludes, 'docs/')).toBe('look');
    expect(ask(excludes, 'docs/deep/')).toBe('look');
    expect(ask(excludes, 'docs/deep/two.md')).toBe('in');
    expect(ask(excludes, 'docs/deep/three.md')).toBe('out');
  });
});
