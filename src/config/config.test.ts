import { describe, expect, it } from 'vitest';
import { readConfigEnvironment } from './config.ts';
import { effectiveSpec } from './effective-spec.ts';

const read = (env: Record<string, string>) => readConfigEnvironment({ HOME: '/home/me', ...env });

describe('the environment', () => {
  it('[G4] sets memory and processor time', () => {
    const { source } = read({ SALLYPORT_MEM: '2g', SALLYPORT_CPU_QUOTA: '150000' });
    expect(effectiveSpec([source]).spec.limits).toEqual({ memory: 2 * 2 ** 30, cpus: 1.5 });
  });

  it('sets every field that it promises to', () => {
    const { source } = read({
      SALLYPORT_IMAGE: 'i',
      SALLYPORT_DEFAULT_IMAGE: 'd',
      SALLYPORT_STRICT_IMAGE: 's',
      SALLYPORT_MEM: '1g',
      SALLYPORT_CPU_QUOTA: '100000',
      SALLYPORT_PIDS: '5',
      SALLYPORT_NOFILE: '64',
      SALLYPORT_DISK: '9g',
      SALLYPORT_PROFILE: 'standard',
      SALLYPORT_RUNTIME: 'runsc',
      SALLYPORT_USER: '5:6',
      SALLYPORT_IDLE_TTL: '5m',
      SALLYPORT_MAX_LIFETIME: 'never',
    });
    expect(source.fragment).toEqual({
      image: 'i',
      images: { default: 'd', strict: 's' },
      limits: { memory: '1g', cpus: 1, pids: 5, nofile: 64, disk: '9g' },
      profile: 'standard',
      runtime: 'runsc',
      user: '5:6',
      idle_ttl: '5m',
      max_lifetime: 'never',
    });
  });

  it('takes an empty variable for an absent one', () => {
    expect(read({ SALLYPORT_IMAGE: '', SALLYPORT_CPU_QUOTA: '' }).source.fragment).toEqual({});
  });

  it.each(['abc', '-1', '1.5', '2e5', '1'.repeat(20)])('refuses the quota %s', (quota) => {
    expect(() => read({ SALLYPORT_CPU_QUOTA: quota })).toThrow(
      /^SALLYPORT_CPU_QUOTA .* must be a whole number$/,
    );
  });

  it('knows where files are', () => {
    expect(read({})).toMatchObject({
      userFile: '/home/me/.config/sallyport/config.yaml',
      stateDir: '/home/me/.local/state/sallyport',
      approveProject: false,
    });
    expect(read({ XDG_CONFIG_HOME: '/c', XDG_STATE_HOME: '/s' })).toMatchObject({
      userFile: '/c/sallyport/config.yaml',
      stateDir: '/s/sallyport',
    });
    expect(read({ SALLYPORT_STATE_DIR: '/x', SALLYPORT_APPROVE_PROJECT: '1' })).toMatchObject({
      stateDir: '/x',
      approveProject: true,
    });
    expect(read({ SALLYPORT_APPROVE_PROJECT: '0' }).approveProject).toBe(false);
  });
});
