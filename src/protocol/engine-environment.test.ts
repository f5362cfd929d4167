import { describe, expect, it } from 'vitest';
import { engineChoice, readEngineName } from './engine-environment.ts';

describe('the engine that the environment names', () => {
  it('is Docker at its usual places where nothing is named, and another one may be used in its place', () => {
    for (const env of [{}, { DOCKER_HOST: '', SALLYPORT_ENGINE: 'auto' }])
      expect(engineChoice(env)).toEqual({ key: 'docker', variables: {}, mayFallBack: true });
  });

  it('has a key for each address, which stays the same from call to call', () => {
    const here = engineChoice({ DOCKER_HOST: 'unix:///a.sock' });
    expect(here).toEqual({
      key: expect.stringMatching(/^docker-[0-9a-f]{8}$/),
      variables: { DOCKER_HOST: 'unix:///a.sock' },
      mayFallBack: false,
    });
    expect(engineChoice({ DOCKER_HOST: 'unix:///a.sock', OTHER: 'x' })).toEqual(here);
    const keys = [
      { DOCKER_HOST: 'unix:///a.sock' },
      { DOCKER_HOST: 'unix:///b.sock' },
      { DOCKER_CONTEXT: 'unix:///a.sock' },
      { DOCKER_HOST: 'unix:///a.sock', DOCKER_TLS_VERIFY: '1' },
      { SALLYPORT_ENGINE_DIR: '/srv/e' },
    ].map((env) => engineChoice(env).key);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('is the same Docker whether it is named or not, but nothing takes the place of one that is named', () => {
    expect(engineChoice({ SALLYPORT_ENGINE: 'docker' })).toEqual({
      key: 'docker',
      variables: { SALLYPORT_ENGINE: 'docker' },
      mayFallBack: false,
    });
    expect(engineChoice({ SALLYPORT_ENGINE_DIR: '/srv/e' }).mayFallBack).toBe(true);
  });

  it('is bubblewrap whatever the address of Docker is', () => {
    const choice = { key: 'bubblewrap', variables: { SALLYPORT_ENGINE: 'bubblewrap' }, mayFallBack: false };
    expect(engineChoice({ SALLYPORT_ENGINE: 'bubblewrap', DOCKER_HOST: 'unix:///a.sock' })).toEqual(choice);
    expect(engineChoice({ DOCKER_HOST: 'unix:///a.sock' }, 'bubblewrap')).toEqual(choice);
    expect(engineChoice({ SALLYPORT_ENGINE: 'bubblewrap' }, 'docker').key).toBe('docker');
    expect(engineChoice({ SALLYPORT_ENGINE: 'bubblewrap' }, 'auto')).toEqual(choice);
  });

  it('is refused where its name is unknown', () => {
    expect(() => readEngineName({ SALLYPORT_ENGINE: 'podmann' })).toThrow(
      expect.objectContaining({ code: 'usage', advice: expect.stringContaining('bubblewrap') }),
    );
  });
});
