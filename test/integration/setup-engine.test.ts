import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type EngineEnvironment, readEngineEnvironment } from '../../src/engines/docker/config.ts';
import { silent } from '../../src/lib/progress.ts';
import { readSetupEnvironment, type SetupEnvironment } from '../../src/setup/config.ts';
import { type EnsureEngineRequest, ensureEngine } from '../../src/setup/ensure-engine.ts';
import { gatherHostFacts } from '../../src/setup/host-facts.ts';
import { findDaemon } from '../../src/setup/private-engine/owned-processes.ts';
import { privateEnginePaths } from '../../src/setup/private-engine/paths.ts';
import { startPrivateEngine } from '../../src/setup/private-engine/start.ts';
import { stopPrivateEngine } from '../../src/setup/private-engine/stop.ts';
import { asRoot, when } from '../support/selection.ts';

describe('setting up an engine', () => {
  let folder: string;
  let setup: SetupEnvironment;

  beforeEach(async () => {
    folder = await mkdtemp('/tmp/sally-s-');
    setup = { ...readSetupEnvironment({ HOME: folder, PATH: '' }), engineDir: join(folder, 'e') };
  });

  afterEach(async () => {
    await stopPrivateEngine(privateEnginePaths(setup), { environment: setup.childVariables });
    await rm(folder, { recursive: true, force: true });
  });

  const environment = (dockerHost?: string): EngineEnvironment =>
    readEngineEnvironment({ HOME: folder, ...(dockerHost === undefined ? {} : { DOCKER_HOST: dockerHost }) });

  const ensure = (more: Partial<EnsureEngineRequest>) =>
    ensureEngine({
      environment: environment(),
      setup,
      progress: silent,
      consent: async () => {
        throw new Error('nothing may be installed by a test');
      },
      ...more,
    });

  it('[G3] tells a wrong DOCKER_HOST at once and starts nothing', async () => {
    await expect(ensure({ environment: environment('unix:///no/such.sock') })).rejects.toMatchObject({
      code: 'engine_unreachable',
      advice: expect.stringContaining('unset DOCKER_HOST'),
    });
    await expect(ensure({ environment: environment('nonsense') })).rejects.toMatchObject({
      code: 'engine_endpoint_invalid',
    });
    expect(await findDaemon(privateEnginePaths(setup))).toBeUndefined();
  });

  it('[G3] tells an engine that accepts and never answers, and starts none beside it', async () => {
    const socket = join(folder, 'half-dead.sock');
    const server = createServer(() => {});
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    try {
      await expect(ensure({ environment: environment(`unix://${socket}`) })).rejects.toMatchObject({
        code: 'engine_timeout',
      });
    } finally {
      server.closeAllConnections();
      server.close();
    }
    expect(await findDaemon(privateEnginePaths(setup))).toBeUndefined();
  });

  it('is cancelled with a typed error', async () => {
    const signal = AbortSignal.abort('SIGINT');
    await expect(ensure({ signal })).rejects.toMatchObject({ code: 'cancelled' });
  });

  when(asRoot).describe('as root', () => {
    it('[C3] uses a chosen engine that answers, and starts no other', async () => {
      const other = { ...setup, engineDir: join(folder, 'o') };
      const paths = privateEnginePaths(other);
      const { programs } = await gatherHostFacts(setup);
      const environmentOfChild = setup.childVariables;
      await startPrivateEngine(paths, {
        dockerd: programs.dockerd ?? 'dockerd',
        environment: environmentOfChild,
        progress: silent,
      });
      try {
        const ready = await ensure({ environment: environment(`unix://${paths.socket}`) });
        expect(ready).toMatchObject({
          how: 'answered',
          privateEngine: false,
          found: { source: 'DOCKER_HOST' },
        });
        expect(await findDaemon(privateEnginePaths(setup))).toBeUndefined();
      } finally {
        await stopPrivateEngine(paths, { environment: environmentOfChild });
      }
    });
  });
});
