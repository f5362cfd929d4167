import { describe, expect, it } from 'vitest';
import { engineChoice, readEngineName, withCurrentContext } from './engine-environment.ts';

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

  it('is another one for each current context of docker, and stays that one after the context has changed', () => {
    const inContext = (name: string | undefined, env = {}) =>
      engineChoice(withCurrentContext(env, () => name));
    const none = { key: 'docker', variables: { SALLYPORT_CURRENT_CONTEXT: 'default' }, mayFallBack: true };
    expect(inContext(undefined)).toEqual(none);
    expect(inContext('default')).toEqual(none);
    const build = inContext('build');
    expect(build).toEqual({
      key: expect.stringMatching(/^docker-[0-9a-f]{8}$/),
      variables: { SALLYPORT_CURRENT_CONTEXT: 'build' },
      mayFallBack: true,
    });
    expect(inContext('desktop').key).not.toBe(build.key);
    // The daemon is started with the variables, and its own look at the settings changes nothing.
    for (const { key, variables } of [none, build])
      expect(inContext('desktop', variables)).toMatchObject({ key, variables });
    // What a person names counts alone.
    for (const env of [{ DOCKER_HOST: 'unix:///a.sock' }, { DOCKER_CONTEXT: 'a' }])
      expect(inContext('build', env)).toEqual(engineChoice(env));
  });

  it('is refused where its name is unknown', () => {
    expect(() => readEngineName({ SALLYPORT_ENGINE: 'podmann' })).toThrow(
      expect.objectContaining({ code: 'usage', advice: expect.stringContaining('bubblewrap') }),
    );
  });
});
