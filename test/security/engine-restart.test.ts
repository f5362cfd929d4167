/** The engine goes away and comes back under a daemon with sandboxes: on an engine of the test's own. */

import { expect, test } from 'vitest';
import type { HealthView } from '../../src/protocol/views.ts';
import type { DaemonClient } from '../../src/sdk/client.ts';
import { followEvents } from '../../src/sdk/events.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { makeSandbox } from '../support/daemon-world.ts';
import { copyTestImage, ownEngine } from '../support/own-engine.ts';
import { full } from '../support/requires.ts';
import { asRoot, when } from '../support/selection.ts';

when(asRoot).describe('[A16] an engine that restarts', () => {
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
