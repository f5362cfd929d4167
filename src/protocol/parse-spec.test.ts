import { describe, expect, it } from 'vitest';
import { SallyportError } from './errors.ts';
import { parseBody, parseSpec } from './parse-spec.ts';
import { execBody } from './requests.ts';

function refusal(value: unknown): SallyportError {
  try {
    parseSpec(value);
  } catch (error) {
    if (error instanceof SallyportError) return error;
    throw error;
  }
  throw new Error('was accepted');
}

const many = (count: number, prefix: string): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, 'x']));

describe('parseSpec', () => {
  it('gives sizes in bytes and durations in milliseconds', () => {
    const spec = parseSpec({ limits: { memory: '512m' }, idle_ttl: '1h30m', max_lifetime: 'never' });
    expect(spec).toEqual({ limits: { memory: 512 * 2 ** 20 }, idle_ttl: 5_400_000, max_lifetime: 'never' });
  });

  it.each([
    ['a network of the host', { network: 'host' }, 'network ("host") must be none'],
    [
      'a bare number of bytes',
      { limits: { memory: 12 } },
      'limits.memory (12) is 12 bytes',
      'did you mean 12m?',
    ],
    ['the same as text', { limits: { memory: '12' } }, 'limits.memory ("12")', 'did you mean 12m?'],
    ['[N5] too little disk', { limits: { disk: '63m' } }, 'limits.disk ("63m")', 'at least 64m'],
    ['[N5] disk without a unit', { limits: { disk: 40 } }, 'limits.disk (40)', 'did you mean 40g?'],
    ['a misspelt field', { imagee: 'x' }, 'imagee is no known field; did you mean image?'],
    ['two letters swapped', { lables: {} }, 'lables is no known field; did you mean labels?'],
    [
      'a misspelt field inside',
      { limits: { memry: 1 } },
      'limits.memry is no known field; did you mean memory?',
    ],
    [
      'one in a list',
      { mounts: [{ sorce: '/a', target: '/b' }] },
      'mounts.0.sorce is no known field; did you mean source?',
    ],
    [
      'a field like no other',
      { privileged: true },
      'privileged is no known field; known are image, build, agent, images, name',
    ],
    ['a pid namespace', { pid: 'host' }, 'pid is no known field'],
    ['devices', { devices: ['/dev/kvm'] }, 'devices is no known field'],
    ['a missing field', { workspace: {} }, 'workspace.path is missing; it must be text'],
    ['a wrong type', { limits: { cpus: '2' } }, 'limits.cpus ("2") must be a number'],
    ['a wrong union', { limits: { memory: true } }, 'limits.memory (true) must be text or a number'],
    ['an unknown choice', { profile: 'loose' }, 'profile ("loose") must be standard or strict'],
    ['too small a number', { limits: { pids: 0 } }, 'limits.pids (0) must be at least 1'],
    ['an empty command', { command: [] }, 'command (a list) must be at least 1 entries long'],
    ['a NUL', { workdir: '/a\0b' }, 'workdir ("/a\\u0000b") contains a NUL'],
    ['a target with ..', { mounts: [{ source: '/a', target: '/a/../etc' }] }, 'must not contain ..'],
    ['a bare uid', { user: '1000' }, 'user ("1000") must be uid:gid in numbers'],
    ['a name that is none', { name: '../x' }, 'name ("../x") is no name'],
    ['no map at all', null, 'it (null) must be a map of fields'],
  ])('refuses %s by field, value, reason and way out', (_, value, ...parts) => {
    const error = refusal(value);
    expect(error.code).toBe('spec_invalid');
    expect(error.kind).toBe('invalid');
    for (const part of parts) expect(error.message).toContain(part);
  });

  it('[A12] refuses labels by which Sallyport knows its own, however they are spelt', () => {
    expect(refusal({ labels: { 'dev.sallyport.owned': 'x' } }).message).toContain('is reserved');
    expect(refusal({ labels: { 'Dev.Sallyport.Owned': 'x' } }).message).toContain('is reserved');
    expect(parseSpec({ labels: { 'dev.sallyporter': 'x' } }).labels).toEqual({ 'dev.sallyporter': 'x' });
  });

  it('never repeats the value of a variable', () => {
    const error = refusal({
      envs: { 'a-b': 'hunter2', SALLYPORT_X: 'hunter2', LONG: 'hunter2\0', N: { hunter2: 1 } },
    });
    expect(JSON.stringify([error.message, error.details])).not.toContain('hunter2"');
    expect(error.message).toContain('envs.a-b is no name of a variable');
    expect(error.message).toContain('envs.SALLYPORT_X is reserved');
    expect(error.message).toContain('envs.LONG contains a NUL');
  });

  it('lists ten problems at most, and says how many more there are', () => {
    const error = refusal(many(25, 'unknown'));
    expect(error.message.split('\n')).toHaveLength(12);
    expect(error.message).toContain('and 15 more');
    expect(error.details['fields']).toHaveLength(10);
  });

  it.each([
    ['unknown fields', many(100_000, 'k')],
    ['variables', { envs: many(100_000, 'k') }],
    ['bad names of variables', { envs: many(100_000, 'k-') }],
    ['reserved labels', { labels: many(100_000, 'dev.sallyport.') }],
    ['mounts', { mounts: Array.from({ length: 100_000 }, () => ({})) }],
  ])('refuses 100,000 %s in less than 300 ms of processor time', (_, value) => {
    refusal({ unknown: 1 });
    const before = process.cpuUsage();
    expect(refusal(value).message).toContain('has more than');
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(300);
  });

  it('refuses what is nested without end', () => {
    const cycle: Record<string, unknown> = {};
    cycle['workspace'] = cycle;
    expect(refusal(cycle).message).toContain('is nested deeper than');
  });

  it('does not overlook a field that is named __proto__', () => {
    expect(refusal(JSON.parse('{"envs":{"__proto__":"x"}}')).message).toContain('envs.__proto__');
    expect(refusal(JSON.parse('{"__proto__":{"image":"x"}}')).message).toContain('__proto__');
  });

  it('shortens what is long', () => {
    expect(refusal({ name: 'A'.repeat(5000) }).message.length).toBeLessThan(300);
  });

  it('serves other bodies of the API in the same words', () => {
    expect(() => parseBody(execBody, { argv: ['a'], env: {} }, 'the exec')).toThrow(
      'the exec cannot be used: env is no known field; did you mean envs?',
    );
  });
});
