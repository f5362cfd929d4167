import { describe, expect, it } from 'vitest';
import { requireFreeTargets, targetOf } from './targets.ts';

const check = (...paths: string[]) =>
  requireFreeTargets(
    paths.map((path, i) => targetOf(`mounts.${i}.target`, path)),
    '/home/sally',
  );

describe('[A3] targets', () => {
  it.each([
    '/',
    '/.sallyport',
    '/.sallyport/porter',
    '/proc',
    '/proc/self',
    '/sys/fs',
    '/dev',
    '/dev/shm',
    '/tmp',
    '/etc',
    '/etc/passwd',
    '/etc/group',
    '/etc/hosts',
    '/etc/resolv.conf',
    '/home',
    '//tmp//',
    '/./proc/',
  ])('%s is reserved', (path) => {
    expect(() => check(path)).toThrow(expect.objectContaining({ code: 'refused_by_policy' }));
  });

  it.each([
    '/workspace',
    '/data/in',
    '/tmp/input',
    '/etc/myapp',
    '/home/sally',
    '/home/sally/.cache',
    '/opt',
    '/process',
    '/var/run/x',
  ])('%s is free', (path) => {
    expect(() => check(path)).not.toThrow();
  });

  it.each([
    ['/workspace', '/workspace'],
    ['/workspace', '/workspace/'],
    ['/workspace', '/workspace/sub'],
    ['/a/b/c', '/a'],
    ['/a//b', '/a/./b/c'],
  ])('%s conflicts with %s', (first, second) => {
    expect(() => check('/other', first, second)).toThrow(/mounts\.2\.target: .* mounts\.1\.target/);
  });

  it('tells names with a common beginning apart', () => {
    expect(() => check('/workspace', '/workspace2', '/work')).not.toThrow();
  });

  it('in a box whose home is /tmp, /home is free', () => {
    expect(() => requireFreeTargets([targetOf('workspace.target', '/home/x')], '/tmp')).not.toThrow();
  });
});
