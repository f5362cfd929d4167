import { describe, expect, it } from 'vitest';
import { usableRuntimes } from './info.ts';
import type { EngineVersion } from './version.ts';

const versionOf = (component: string): EngineVersion => ({
  engine: '1',
  api: '1.41',
  os: 'linux',
  architecture: 'amd64',
  kernel: '6.1',
  components: { [component]: '1' },
  builds: {},
});

describe('[R11] the runtimes that a container can be given', () => {
  it('are those that Docker lists', () => {
    const info = { runtimes: ['runc', 'runsc'], defaultRuntime: 'runc' };
    expect(usableRuntimes(info, versionOf('engine'))).toEqual(['runc', 'runsc']);
  });

  it.each([
    ['crun', ['crun']],
    ['', []],
  ])('are the default of Podman alone: %j', (defaultRuntime, usable) => {
    const info = { runtimes: ['crun', 'kata', 'runsc'], defaultRuntime };
    expect(usableRuntimes(info, versionOf('podman engine'))).toEqual(usable);
  });
});
