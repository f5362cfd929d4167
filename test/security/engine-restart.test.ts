/** The engine goes away and comes back under a daemon with sandboxes: on an engine of the test's own. */

import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import type { HealthView } from '../../src/protocol/views.ts';
import type { DaemonClient } from '../../src/sdk/client.ts';
import { followEvents } from '../../src/sdk/events.ts';
import { readSetupEnvironment } from '../../src/setup/config.ts';
import { gatherHostFacts } from '../../src/setup/host-facts.ts';
import { findDaemon, findLeftovers } from '../../src/setup/private-engine/owned-processes.ts';
import { privateEnginePaths } from '../../src/setup/private-engine/paths.ts';
import { startPrivateEngine } from '../../src/setup/private-engine/start.ts';
import { stopPrivateEngine } from '../../src/setup/private-engine/stop.ts';
import { signalProcess, waitUntilGone } from '../../src/setup/processes.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { makeSandbox } from '../support/daemon-world.ts';
import { full, requiresRoot } from '../support/requires.ts';

async function ownEngine() {
  const setup = { ...readSetupEnvironment(), engineDir: await mkdtemp('/tmp/sally-r-') };
  const paths = privateEnginePaths(setup);
  const dockerd = (await gatherHostFacts(setup)).programs.dockerd ?? 'dockerd';
  const environment = setup.childVariables;
  onTestFinished(async () => {
    await stopPrivateEngine(paths, { environment });
    expect(await findLeftovers(paths)).toEqual([]);
    await rm(paths.runDir, { recursive: true, force: true });
  });
  return {
    socket: paths.socket,
    start: async () => void (await startPrivateEngine(paths, { dockerd, environment, progress: () => {} })),
    stop: async () => void (await stopPrivateEngine(paths, { environment })),
    kill: async () => {
      const daemon = await findDaemon(paths);
      if (daemon === undefined) throw new Error('the engine does not run');
      await signalProcess(daemon, 'SIGKILL');
      await waitUntilGone([daemon], 10_000);
      // What it left behind would hold up the next one, and it takes the containers along.
      await stopPrivateEngine(paths, { environment });
    },
  };
}

/** From the engine of all tests to the one at this socket. */
async function copyTestImage(socketPath: string): Promise<void> {
  const { endpoint, image } = inject('engine');
  await new Promise<void>((resolve, reject) => {
    const from = request(
      { socketPath: endpoint.replace('unix://', ''), path: `/images/${image}/get` },
      (content) => {
        const into = request({ socketPath, method: 'POST', path: '/images/load?quiet=1' }, (answer) => {
          answer.resume();
          answer.once('end', () =>
            answer.statusCode === 200 ? resolve() : reject(new Error(`load: ${answer.statusCode}`)),
          );
        });
        pipeline(content, into).catch(reject);
      },
    );
    from.once('error', reject);
    from.end();
  });
}

describe.runIf(requiresRoot())('[A16] an engine that restarts', () => {
  const ways = full ? (['stop', 'kill'] as const) : (['stop'] as const);
  test.each(ways)(
    'after %s its sandboxes are stopped with the reason, its commands are over, and all can go on',
    async (way) => {
      const engine = await ownEngine();
      await engine.start();
      await copyTestImage(engine.socket);
      const daemon = await (await daemonHome()).start({ DOCKER_HOST: `unix://${engine.socket}` });
      const box = await makeSandbox(daemon, { name: 'box' });
      await box.sh('echo kept > /home/sally/file', { check: true });
      const { sequence } = await daemon.client.json<HealthView>('GET', '/v1/health');
      const waited = box.sh('echo before; exec tail -f /dev/null');
      await running(daemon.client, sequence);
      // An engine that stops in good order tells its containers to end; of one that is killed nobody hears how they did.
      const over =
        way === 'stop'
          ? expect(waited).resolves.toMatchObject({ signal: 'SIGTERM', stdout: 'before\n', killed: false })
          : expect(waited).rejects.toMatchObject({ code: 'exec_lost' });
      await engine[way]();
      // The daemon answers without its engine, and says so.
      expect(await daemon.client.json('GET', '/v1/sandboxes/box')).toMatchObject({ name: 'box' });
      await expect(makeSandbox(daemon)).rejects.toMatchObject({ code: expect.stringMatching(/^engine_/) });
      await engine.start();
      for await (const event of followEvents(daemon.client, { since: sequence })) {
        if (event.type === 'sandbox.state' && event.to === 'STOPPED') break;
      }
      await over;
      expect(await box.refresh()).toMatchObject({
        state: 'STOPPED',
        reason: expect.stringMatching(/^the engine /),
      });
      expect(await daemon.client.json('GET', '/v1/health')).toMatchObject({ engine: { reachable: true } });
      await box.start();
      expect((await box.exec(['cat', '/home/sally/file'])).stdout).toBe('kept\n');
      await box.remove();
    },
    120_000,
  );
});

/** Until a command has begun. */
async function running(client: DaemonClient, since: number): Promise<void> {
  for await (const event of followEvents(client, { since })) if (event.type === 'exec.started') return;
}
