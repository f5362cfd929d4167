import { describe, expect, it } from 'vitest';
import { BuildSteps, leftovers } from './build-leftovers.ts';

const row = (id: string, parent = '', tags: string[] | null = null) => ({
  Id: `sha256:${id.padEnd(64, '0')}`,
  ParentId: parent === '' ? '' : `sha256:${parent.padEnd(64, '0')}`,
  RepoTags: tags,
});

describe('what a failed build left', () => {
  it('is what its own steps made, not the base and not what the cache had', () => {
    const steps = new BuildSteps();
    for (const text of [
      'Step 1/4 : FROM debian\n',
      ' ---> aaaaaaaaaaaa\n',
      'Step 2/4 : USER root\n',
      ' ---> Using cache\n',
      ' ---> bbbbbbbbbbbb\n',
      'Step 3/4 : COPY a b\n',
      ' ---> cccccccccccc\n',
      'Step 4/4 : RUN false\n',
      ' ---> Running in dddddddddddd\n',
    ])
      steps.read(text);
    expect(steps.made).toEqual(['cccccccccccc']);
  });

  it('is removed newest first, with a step that was committed but not reported', () => {
    const rows = [
      row('aaaaaaaaaaaa'),
      row('bbbbbbbbbbbb', 'aaaaaaaaaaaa'),
      row('cccccccccccc', 'bbbbbbbbbbbb'),
    ];
    expect(leftovers(rows, ['aaaaaaaaaaaa', 'bbbbbbbbbbbb'])).toEqual([
      rows[2]?.Id,
      rows[1]?.Id,
      rows[0]?.Id,
    ]);
  });

  it('is never an image with a tag, whatever the output of the build says', () => {
    const rows = [row('aaaaaaaaaaaa', '', ['precious:latest'])];
    expect(leftovers(rows, ['aaaaaaaaaaaa'])).toEqual([]);
  });
});
