/** porter/runtime beside glibc, and what it does with a program that breaks its rules. build.test.ts tries its system calls. */

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { nativeArchitecture } from '../support/porter-child.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { asRoot, when } from '../support/selection.ts';

const folder = join(packageInfo().root, 'porter');
const hasCompiler = requirement('gcc', commandExists('gcc'));

const trap = nativeArchitecture === 'amd64' ? 'SIGILL' : 'SIGTRAP';

function build(target: string, program: string): string {
  expect(spawnSync('make', ['-s', '-C', folder, target], { stdio: 'inherit' }).status).toBe(0);
  return join(folder, 'build', program);
}

describe.runIf(hasCompiler)("porter's runtime", () => {
  it('gives the answers of glibc, under ASan and UBSan', () => {
    const oracle = build('oracle', 'runtime-oracle');
    for (const seed of ['1', '20261117']) {
      expect(spawnSync(oracle, [seed], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
    }
  });

  it.each([
    [
      'a buffer on the stack that is written past its end',
      'stack',
      'past the end of its buffer on the stack',
    ],
    ['a copy of more than its target holds', 'fortify', 'would have written past the end of its buffer'],
    ['a second free', 'twice', 'of what is free already'],
    ['a realloc of what is free', 'realloc', 'of what is free already'],
    ['a free within an allocation', 'inside', 'within an allocation'],
    ['a free within a large allocation', 'inside-big', 'within an allocation'],
    ['a free of what malloc did not return', 'wild', 'a pointer that malloc did not return'],
  ])('ends a process for %s', (_, name, message) => {
    const check = build(`check-${nativeArchitecture}`, `check-${nativeArchitecture}`);
    const { signal, stderr } = spawnSync(check, ['fault', name], { encoding: 'utf8' });
    expect(signal).toBe(trap);
    expect(stderr).toContain(message);
  });

  when(asRoot).it('ends the first process of a pid namespace too', () => {
    const check = build(`check-${nativeArchitecture}`, `check-${nativeArchitecture}`);
    const { signal, stderr } = spawnSync('unshare', ['--pid', '--fork', check, 'fault', 'twice'], {
      encoding: 'utf8',
    });
    expect(signal).toBe(trap);
    expect(stderr).toContain('of what is free already');
  });
});
