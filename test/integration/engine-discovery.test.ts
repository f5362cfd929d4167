import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readEngineEnvironment } from '../../src/engines/docker/config.ts';
import { discoverEngine } from '../../src/engines/docker/discover.ts';
import { runChild } from '../support/child-program.ts';
import { testEngine } from '../support/engine.ts';
import type { FindResult } from '../support/find-engine.ts';
import { pingServer, temporaryFolder } from '../support/little-engine.ts';
import { isRoot } from '../support/requires.ts';

const engine = testEngine();
const nobody = 65_534;

describe('discovery', () => {
  it('[G3] finds the real engine by DOCKER_HOST and says so', async () => {
    const { found, attempts } = await discoverEngine(
      readEngineEnvironment({ HOME: temporaryFolder(), DOCKER_HOST: engine.endpoint }),
    );
    expect(found?.source).toBe('DOCKER_HOST');
    expect(found?.connection.apiVersion).toBe(engine.connection.apiVersion);
    expect(attempts).toMatchObject([{ outcome: 'answered', endpoint: engine.endpoint }]);
  });

  it('[G3] a socket that is not ours to open is permission denied, with the way to join the group', async () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o755);
    const path = await pingServer('1.41', join(folder, 'docker.sock'));
    chmodSync(path, isRoot ? 0o600 : 0o000);
    const result = await runChild<FindResult>('./find-engine.ts', {
      env: { DOCKER_HOST: `unix://${path}` },
      // Modes do not hold root back.
      ...(isRoot ? { uid: nobody } : {}),
    });
    expect(result).toMatchObject({
      code: 'engine_permission_denied',
      message: `permission denied on unix://${path}`,
      advice: expect.stringContaining('usermod -aG docker'),
    });
  });
});
