import { describe, expect, it } from 'vitest';
import { readConfigEnvironment } from './config.ts';
import { effectiveSpec } from './effective-spec.ts';
import type { SourceKind, SpecFragment, SpecSource } from './spec-source.ts';

const source = (kind: SourceKind, fragment: SpecFragment, file = `/${kind}.yaml`): SpecSource => ({
  kind,
  fragment,
  file,
});
const environment = (env: Record<string, string>) =>
  readConfigEnvironment({ HOME: '/home/me', ...env }).source;

function origin(sources: readonly SpecSource[], field: string) {
  const { values } = effectiveSpec(sources);
  const found = values.find((value) => value.field === field);
  return found && [found.value, found.source, found.where];
}

describe('[O7] the effective spec', () => {
  const all = [
    source('user', { image: 'user', envs: { A: 'user', B: 'user' }, limits: { memory: '8g', cpus: 4 } }),
    source('project', { image: 'project', envs: { B: 'project' }, limits: { cpus: 3 } }),
    environment({ SALLYPORT_IMAGE: 'environment', SALLYPORT_PIDS: '77' }),
    { kind: 'flag' as const, fragment: { image: 'flag' }, names: { image: '--image' } },
  ];

  it.each([
    [4, 'flag', '--image'],
    [3, 'environment', 'SALLYPORT_IMAGE'],
    [2, 'project', '/project.yaml'],
    [1, 'user', '/user.yaml'],
  ])('takes the image of the strongest of %d sources: %s', (count, value, where) => {
    const sources = all.slice(0, count);
    for (const order of [sources, [...sources].reverse()]) {
      expect(origin(order, 'image')).toEqual([value, value, where]);
    }
  });

  it('says where each value came from, down to defaults', () => {
    expect(origin([], 'image')).toEqual(['the base image', 'default', undefined]);
    expect(origin([], 'limits.memory')).toEqual(['4.0 GiB', 'default', undefined]);
    expect(origin([], 'limits.disk')).toEqual(['20 GiB', 'default', undefined]);
    expect(origin(all, 'limits.memory')).toEqual(['8g', 'user', '/user.yaml']);
    expect(origin(all, 'limits.cpus')).toEqual([3, 'project', '/project.yaml']);
    expect(origin(all, 'limits.pids')).toEqual([77, 'environment', 'SALLYPORT_PIDS']);
    expect(origin(all, 'envs.A')).toEqual(['user', 'user', '/user.yaml']);
    expect(origin(all, 'envs.B')).toEqual(['project', 'project', '/project.yaml']);
  });

  const images = [
    source('user', { images: { default: 'user-d', strict: 'user-s' } }),
    source('project', { images: { default: 'project-d' } }),
    environment({ SALLYPORT_DEFAULT_IMAGE: 'environment-d' }),
    {
      kind: 'flag' as const,
      fragment: { images: { default: 'flag-d' } },
      names: { 'images.default': '--default-image' },
    },
  ];

  it.each([
    [4, 'flag', '--default-image'],
    [3, 'environment', 'SALLYPORT_DEFAULT_IMAGE'],
    [2, 'project', '/project.yaml'],
    [1, 'user', '/user.yaml'],
  ])('[O1][O7] takes images.default of the strongest of %d sources: %s', (count, value, where) => {
    const sources = images.slice(0, count);
    for (const field of ['images.default', 'image']) {
      expect(origin(sources, field)).toEqual([`${value}-d`, value, where]);
    }
    expect(origin(sources, 'images.strict')).toEqual(['user-s', 'user', '/user.yaml']);
  });

  it('[O1][O7][C2] shows the image of the strict profile, and that a named one or an agent takes precedence', () => {
    const strict = source('flag', { profile: 'strict' });
    expect(origin([...images, strict], 'image')).toEqual(['user-s', 'user', '/user.yaml']);
    expect(origin([strict, environment({ SALLYPORT_DEFAULT_IMAGE: 'x' })], 'image')).toEqual([
      'the base image',
      'default',
      undefined,
    ]);
    expect(origin([...images, source('user', { image: 'named' })], 'image')).toEqual([
      'named',
      'user',
      '/user.yaml',
    ]);
    expect(origin([...images, source('flag', { agent: 'claude' })], 'image')?.[1]).toBe('default');
    expect(origin([], 'images.strict')).toEqual(['the base image', 'default', undefined]);
  });

  it('[O7] leaves the images of the user as they are where a project file has an empty map', () => {
    const [user] = images;
    const sources = user === undefined ? [] : [user];
    const empty = { images: {} };
    expect(effectiveSpec([...sources, source('project', empty)]).spec.images).toEqual({
      default: 'user-d',
      strict: 'user-s',
    });
    expect(effectiveSpec([...sources, source('flag', empty)]).spec.images).toEqual({});
  });

  it('[R11] takes `runtime: strongest` of the user’s own file as the default', () => {
    const own = source('user', { runtime: 'strongest' });
    expect(origin([own], 'runtime')).toEqual(['strongest', 'user', '/user.yaml']);
    expect(effectiveSpec([own]).spec.runtime).toBe('strongest');
    expect(effectiveSpec([own, source('flag', { runtime: 'runc' })]).spec.runtime).toBe('runc');
  });

  it('joins mounts by target and a workspace by field', () => {
    const { input } = effectiveSpec([
      source('project', {
        workspace: { path: '/p', target: '/src' },
        mounts: [
          { source: '/a', target: '/x' },
          { source: '/b', target: '/y' },
        ],
      }),
      source('flag', { workspace: { mode: 'copy' }, mounts: [{ source: '/c', target: '/x' }] }),
    ]);
    expect(input.workspace).toEqual({ path: '/p', target: '/src', mode: 'copy' });
    expect(input.mounts).toEqual([
      { source: '/c', target: '/x' },
      { source: '/b', target: '/y' },
    ]);
  });

  it('[A2] joins copies by target, and replaces tools and patterns as a whole', () => {
    const { input } = effectiveSpec([
      source('project', {
        workspace: { path: '/p', mode: 'copy', exclude_patterns: ['a'], exclude_from: ['.gitignore'] },
        copies: [
          { source: '/a', target: '/x' },
          { source: '/b', target: '/y', exclude_patterns: ['b'] },
        ],
        builtin_tools: ['npm', 'git'],
      }),
      source('flag', {
        workspace: { exclude_patterns: ['c'] },
        copies: [{ source: '/c', target: '/x' }],
        builtin_tools: ['uv'],
      }),
    ]);
    expect(input.workspace).toEqual({
      path: '/p',
      mode: 'copy',
      exclude_patterns: ['c'],
      exclude_from: ['.gitignore'],
    });
    expect(input.copies).toEqual([
      { source: '/c', target: '/x' },
      { source: '/b', target: '/y', exclude_patterns: ['b'] },
    ]);
    expect(input.builtin_tools).toEqual(['uv']);
  });

  it('lets an empty list or map take away what weaker sources gave', () => {
    const weaker = source('project', { envs: { A: '1' }, mounts: [{ source: '/a', target: '/x' }] });
    const { spec, values } = effectiveSpec([weaker, source('flag', { envs: {}, mounts: [] })]);
    expect(spec).toMatchObject({ envs: {}, mounts: [] });
    expect(values.some(({ field }) => field.startsWith('envs.'))).toBe(false);
  });

  it('gives an input that is understood again as the same spec', () => {
    const { input, spec } = effectiveSpec([source('flag', { idle_ttl: '1h', limits: { memory: '1g' } })]);
    expect(input).toEqual({ idle_ttl: '1h', limits: { memory: '1g' } });
    expect(spec).toEqual({ idle_ttl: 3_600_000, limits: { memory: 2 ** 30 } });
  });

  it('blames the variable or the flag that a wrong value came from', () => {
    expect(() => effectiveSpec([environment({ SALLYPORT_MEM: '12' })])).toThrow(
      /SALLYPORT_MEM \("12"\) is 12 bytes.*did you mean 12m\?/,
    );
    expect(() => effectiveSpec([environment({ SALLYPORT_PROFILE: 'loose' })])).toThrow(
      'SALLYPORT_PROFILE ("loose") must be',
    );
    expect(() => effectiveSpec([environment({ SALLYPORT_STRICT_IMAGE: '-x' })])).toThrow(
      'SALLYPORT_STRICT_IMAGE ("-x") is no image reference',
    );
    const flag = { kind: 'flag' as const, fragment: { user: 'root' }, names: { user: '--user' } };
    expect(() => effectiveSpec([flag])).toThrow('--user ("root") must be uid:gid');
  });
});

describe("[O7] a project beyond the user's own file", () => {
  const cases: readonly (readonly [string, SpecFragment, SpecFragment, SpecFragment])[] = [
    [
      'limits.memory',
      { limits: { memory: '2g' } },
      { limits: { memory: '2049m' } },
      { limits: { memory: '2g' } },
    ],
    ['limits.cpus', { limits: { cpus: 1 } }, { limits: { cpus: 1.5 } }, { limits: { cpus: 0.5 } }],
    ['limits.pids', { limits: { pids: 100 } }, { limits: { pids: 101 } }, { limits: { pids: 1 } }],
    ['limits.disk', { limits: { disk: '30g' } }, { limits: { disk: '31g' } }, { limits: { disk: '30g' } }],
    [
      'optional_services.limits.disk',
      { limits: { disk: '30g' } },
      { optional_services: [{ name: 'db', image: 'postgres', limits: { disk: '31g' } }] },
      { optional_services: [{ name: 'db', image: 'postgres', limits: { disk: '30g' } }] },
    ],
    ['limits.nofile', { limits: { nofile: 100 } }, { limits: { nofile: 101 } }, { limits: { nofile: 16 } }],
    ['idle_ttl', { idle_ttl: '1h' }, { idle_ttl: 'never' }, { idle_ttl: '59m' }],
    ['max_lifetime', { max_lifetime: '1h' }, { max_lifetime: '61m' }, { max_lifetime: '1h' }],
    ['profile', { profile: 'strict' }, { profile: 'standard' }, { profile: 'strict' }],
    ['runtime', { runtime: 'runsc' }, { runtime: 'runc' }, { runtime: 'runsc' }],
    ['runtime', { runtime: 'strongest' }, { runtime: 'runc' }, { runtime: 'strongest' }],
    ['runtime', { runtime: 'runsc' }, { runtime: 'strongest' }, { runtime: 'runsc' }],
  ];

  it.each(cases)('is refused: %s', (field, user, beyond, within) => {
    const own = source('user', user);
    expect(() => effectiveSpec([own, source('project', beyond)])).toThrow(
      expect.objectContaining({
        code: 'refused_by_policy',
        message: expect.stringContaining('/project.yaml'),
        details: expect.objectContaining({ field, userFile: '/user.yaml' }),
      }),
    );
    expect(() => effectiveSpec([own, source('project', within)])).not.toThrow();
    // The user may do what he likes.
    expect(() => effectiveSpec([own, source('project', beyond), source('flag', beyond)])).not.toThrow();
  });

  it('is not reached by an empty map either', () => {
    const own = source('user', { limits: { memory: '1g', pids: 50 }, envs: { A: '1' } });
    const { spec } = effectiveSpec([own, source('project', { limits: {}, envs: {} })]);
    expect(spec).toEqual({ limits: { memory: 2 ** 30, pids: 50 }, envs: {} });
    // The user may do what he likes.
    expect(effectiveSpec([own, source('flag', { limits: {} })]).spec.limits).toEqual({});
  });

  it('a narrower profile of the project is taken', () => {
    const sources = [source('user', { profile: 'standard' }), source('project', { profile: 'strict' })];
    expect(effectiveSpec(sources).spec.profile).toBe('strict');
  });
});

describe('the strict profile and limits of weaker sources', () => {
  it('keeps its own limits over larger ones for the usual case, and lets lower ones lower it', () => {
    const user = source('user', { limits: { memory: '8g', cpus: 0.1 } });
    const { spec } = effectiveSpec([user, source('flag', { profile: 'strict' })]);
    expect(spec.limits).toEqual({ cpus: 0.1 });
  });

  it('leaves a limit of the same source to be refused', () => {
    const { spec } = effectiveSpec([source('flag', { profile: 'strict', limits: { memory: '8g' } })]);
    expect(spec.limits).toEqual({ memory: 8 * 2 ** 30 });
  });
});

describe('egress of several sources', () => {
  it('[O7] adds up, and what the user denies stays denied whatever a project says', () => {
    const { spec } = effectiveSpec([
      source('user', { egress: { allow: ['a.com'], deny: ['bad.com'], presets: ['npm'] } }),
      source('project', { egress: { allow: ['b.com'], deny: [] } }),
      source('flag', { egress: { allow: ['c.com'], mode: 'learn' } }),
    ]);
    expect(spec.egress).toEqual({
      mode: 'learn',
      allow: ['a.com', 'b.com', 'c.com'],
      deny: ['bad.com'],
      presets: ['npm'],
    });
    const emptied = effectiveSpec([
      source('user', { egress: { allow: ['a.com'], deny: ['bad.com'] } }),
      source('flag', { egress: { allow: [], deny: [] } }),
    ]);
    expect(emptied.spec.egress).toEqual({ allow: [], deny: ['bad.com'] });
  });

  it('[N5] keeps what the user denies, and the way out that he chose, through an empty map of a project', () => {
    const user = source('user', {
      egress: { mode: 'learn', allow: ['a.com'], deny: ['bad.com'], upstream: 'tor', credentials: ['key'] },
    });
    const flag = source('flag', { egress: { allow: ['c.com'] } });
    const { spec } = effectiveSpec([user, source('project', { egress: {} }), flag]);
    expect(spec.egress).toEqual({ allow: ['c.com'], deny: ['bad.com'], upstream: 'tor' });
    // Without the project all of it is there; and the user's own empty map takes everything but what is denied.
    expect(effectiveSpec([user, flag]).spec.egress).toMatchObject({ mode: 'learn', credentials: ['key'] });
    expect(effectiveSpec([user, source('flag', { egress: {} })]).spec.egress).toEqual({ deny: ['bad.com'] });
  });
});
