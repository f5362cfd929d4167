import { expect, it } from 'vitest';
import { engineChoice, withCurrentContext } from '../protocol/engine-environment.ts';
import { DaemonPlace } from './daemon-place.ts';

const inherited = { PATH: '/bin', DOCKER_HOST: 'unix:///mine.sock', SALLYPORT_CURRENT_CONTEXT: 'mine' };
const environment = { stateDir: '/state', childVariables: inherited };

it.each([
  ['an earlier version noted no context', 'docker', {}],
  ['a context leads to it', 'docker-ebc5fe29', { SALLYPORT_CURRENT_CONTEXT: 'build' }],
  ['its address is named', 'docker-0', { DOCKER_HOST: 'unix:///other.sock' }],
])('a daemon that is started for an engine works with it where %s', (_case, key, variables) => {
  const place = new DaemonPlace(environment, { key, variables, mayFallBack: false }, '/state');
  const { childVariables } = place;
  place.close();
  expect(childVariables).toMatchObject({ PATH: '/bin', SALLYPORT_STATE_DIR: '/state', ...variables });
  // What the daemon makes of them, whichever context is in use by then.
  const chosen = engineChoice(withCurrentContext(childVariables, () => 'changed'));
  expect(chosen.key).toBe(engineChoice(withCurrentContext(variables, () => 'default')).key);
});
