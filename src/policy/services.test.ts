import { describe, expect, it } from 'vitest';
import { parseSpec } from '../protocol/parse-spec.ts';
import { checkCommand, requireServices, serviceCapabilities, serviceLimits } from './services.ts';

const service = { name: 'db', image: 'postgres:16' };
const docker = { engine: 'docker', runtime: 'runc' };
const problem = (spec: unknown): string => {
  try {
    parseSpec(spec);
    return 'none';
  } catch (error) {
    return (error as Error).message;
  }
};

describe('a service in a spec', () => {
  it('[A7] has times that mean what they say when it says none', () => {
    const spec = parseSpec({ required_services: [{ ...service, healthcheck: { test: 'true' } }] });
    expect(spec.required_services?.[0]?.healthcheck).toEqual({
      test: 'true',
      interval: 1000,
      timeout: 5000,
      retries: 30,
      start_period: 0,
    });
  });

  it.each(['Db', 'a_b', '-a', 'a-', '1a', 'a.b', '', 'localhost', 'sandbox', 'x'.repeat(64)])(
    '[A7] cannot be called %j',
    (name) => {
      expect(problem({ required_services: [{ ...service, name }] })).toContain('required_services.0.name');
    },
  );

  it('[A9] has a hook only if the sandbox waits for it', () => {
    const hooked = { ...service, post_start_on_primary: [['true']] };
    expect(problem({ required_services: [hooked] })).toBe('none');
    expect(problem({ optional_services: [hooked] })).toMatch(
      /optional_services\.0\.post_start_on_primary .*only for required services/,
    );
  });

  it('never shows the value of a variable', () => {
    const message = problem({ required_services: [{ ...service, envs: { A: ['hunter2'] } }] });
    expect(message).toContain('envs');
    expect(message).not.toContain('hunter2');
  });
});

describe('services that cannot be', () => {
  it.each([
    [
      'in the strict profile',
      { profile: 'strict', required_services: [service] },
      docker,
      'refused_by_policy',
    ],
    [
      'twice of one name',
      { required_services: [service], optional_services: [service] },
      docker,
      'refused_by_policy',
    ],
    [
      'too many together',
      {
        required_services: Array.from({ length: 6 }, (_, index) => ({ ...service, name: `a${index}` })),
        optional_services: Array.from({ length: 5 }, (_, index) => ({ ...service, name: `b${index}` })),
      },
      docker,
      'refused_by_policy',
    ],
    [
      'on Podman',
      { required_services: [service] },
      { engine: 'podman', runtime: 'crun' },
      'services_unsupported',
    ],
    [
      'on gVisor',
      { required_services: [service] },
      { engine: 'docker', runtime: 'runsc' },
      'services_unsupported',
    ],
  ] as const)('[A9] are refused: %s', (_, spec, facts, code) => {
    expect(() => requireServices(parseSpec(spec), facts)).toThrow(expect.objectContaining({ code }));
    expect(() => requireServices(parseSpec({ optional_services: [service] }), docker)).not.toThrow();
    expect(() => requireServices(parseSpec({ profile: 'strict' }), facts)).not.toThrow();
  });
});

describe('the container of a service', () => {
  it.each(['', 'root', '0', '0:0', 'root:root'])(
    'keeps what giving up root takes if it begins as %j',
    (user) => {
      expect(serviceCapabilities(user)).toEqual(['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID']);
    },
  );

  it.each(['999', 'postgres', '999:0', 'redis:redis'])('keeps nothing if it begins as %j', (user) => {
    expect(serviceCapabilities(user)).toEqual([]);
  });

  it('has limits in every case', () => {
    expect(serviceLimits({}, 2 ** 34)).toEqual({
      memoryBytes: 2 ** 30,
      cpus: 1,
      pids: 256,
      shmBytes: 2 ** 27,
      // As much as the sandbox itself.
      diskBytes: 2 ** 34,
    });
    expect(serviceLimits({ limits: { disk: 2 ** 33 } }, 2 ** 34)).toMatchObject({ diskBytes: 2 ** 33 });
    expect(serviceLimits({ limits: { memory: 2 ** 26, nofile: 100 } }, 2 ** 34)).toMatchObject({
      memoryBytes: 2 ** 26,
      nofile: 100,
    });
  });

  it.each([
    ['pg_isready', ['/bin/sh', '-c', 'pg_isready']],
    [
      ['pg_isready', '-q'],
      ['pg_isready', '-q'],
    ],
    [['CMD', 'pg_isready'], ['pg_isready']],
    [
      ['CMD-SHELL', 'pg_isready || exit 1'],
      ['/bin/sh', '-c', 'pg_isready || exit 1'],
    ],
    [['NONE'], undefined],
    [undefined, undefined],
  ])('is checked by %j with %j', (test, argv) => {
    expect(checkCommand(test)).toEqual(argv);
  });
});
