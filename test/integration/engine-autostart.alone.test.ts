/** An engine that is started because somebody needs it, goes away and comes back: all of it in a folder of the test's own. */

import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readEngineEnvironment } from '../../src/engines/docker/config.ts';
import { discoverEngine } from '../../src/engines/docker/discover.ts';
import type { SallyEvent } from '../../src/protocol/events.ts';
import type { HealthView } from '../../src/protocol/views.ts';
import { DaemonClient } from '../../src/sdk/client.ts';
import { followWireEvents } from '../../src/sdk/events.ts';
import { readSetupEnvironment } from '../../src/setup/config.ts';
import { findLeftovers } from '../../src/setup/private-engine/owned-processes.ts';
import { privateEnginePaths } from '../../src/setup/private-engine/paths.ts';
import { stopPrivateEngine } from '../../src/setup/private-engine/stop.ts';
import { sally } from '../support/cli.ts';
import { requirement } from '../support/requires.ts';
import { asRoot, when } from '../support/selection.ts';

/** Where another engine answers at a usual place, or systemd would be asked, none of ours is started. */
const elsewhere = await discoverEngine(readEngineEnvironment({ HOME: '/nowhere' }));
const isFree = elsewhere.found === undefined && !existsSync('/run/systemd/system');

when(asRoot, requirement('a machine without an engine of its own', isFree)).describe(
  '[C3] an engine that is installed and does not run',
  () => {
    test('is started by the first call, each step told; one that went away and came back is noticed', async () => {
      const folder = await mkdtemp('/tmp/sally-a-');
      const stateDir = join(folder, 'state');
      const engineDir = join(folder, 'e');
      const env = {
        HOME: folder,
        DOCKER_HOST: '',
        SALLYPORT_ENGINE_DIR: engineDir,
        SALLYPORT_STATE_DIR: stateDir,
      };
      const setup = { ...readSetupEnvironment(), engineDir };
      const paths = privateEnginePaths(setup);
      const client = new DaemonClient({ stateDir, startDaemon: false, anyEngine: true });
      onTestFinished(async () => {
        client.close();
        await sally(['daemon', 'stop', '--all'], { env });
        await stopPrivateEngine(paths, { environment: setup.childVariables });
        expect(await findLeftovers(paths)).toEqual([]);
        await rm(folder, { recursive: true, force: true });
      });

      const first = await sally(['ls', '--json'], { env });
      expect(first.stderr).toContain(`sally: engine: starting a private engine at unix://${paths.socket}`);
      expect(first).toMatchObject({ code: 0, stdout: expect.stringContaining('"sandboxes": []') });
      // Nothing is started twice, and nothing is said where there is nothing to do.
      expect(await sally(['ls'], { env })).toMatchObject({ code: 0, stderr: '' });

      const told = await upTo(
        client,
        0,
        ({ type, ...event }) =>
          type === 'engine.progress' && 'step' in event && event.step === 'engine-ready',
      );
      expect(told.map(({ type }) => type)).toEqual(told.map(() => 'engine.progress'));
      expect(told.map((event) => ('message' in event ? event.message : ''))).toEqual([
        'no engine answers; looking for one to start',
        'starting a private dockerd',
        `starting a private engine at unix://${paths.socket}`,
        expect.stringMatching(/^the engine answers/),
      ]);

      const { sequence } = await client.json<HealthView>('GET', '/v1/health');
      await stopPrivateEngine(paths, { environment: setup.childVariables });
      const [lost] = await upTo(client, sequence, ({ type }) => type === 'engine.reachable');
      expect(lost).toMatchObject({ type: 'engine.reachable', reachable: false });
      // The daemon answers without its engine, and says so.
      expect(await client.json('GET', '/v1/health')).toMatchObject({ engine: { reachable: false } });

      expect((await sally(['setup'], { env })).code).toBe(0);
      const [back] = await upTo(client, lost?.sequence ?? 0, ({ type }) => type === 'engine.reachable');
      expect(back).toMatchObject({ reachable: true });
      expect(await client.json('GET', '/v1/health')).toMatchObject({ engine: { reachable: true } });

      // A daemon that finds no engine at its start says so, and is not believed for ever.
      await client.shutdown();
      await stopPrivateEngine(paths, { environment: setup.childVariables });
      const chosen = { ...env, DOCKER_HOST: `unix://${paths.socket}` };
      const none = await sally(['ls', '--json'], { env: chosen });
      expect(JSON.parse(none.stdout)).toMatchObject({ error: { code: 'engine_unreachable' } });
      expect((await sally(['setup'], { env })).code).toBe(0);
      expect(await sally(['ls', '--json'], { env: chosen })).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('"sandboxes": []'),
      });
    }, 180_000);
  },
);

/** Events after a number, until one that fits. */
async function upTo(
  client: DaemonClient,
  since: number,
  isLast: (event: SallyEvent) => boolean,
): Promise<readonly SallyEvent[]> {
  const events: SallyEvent[] = [];
  for await (const event of followWireEvents(client, { since })) {
    events.push(event);
    if (isLast(event)) break;
  }
  return events;
}
