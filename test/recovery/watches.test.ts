/** Time limits and abandoned sandboxes, when the daemon that watched them was killed: the next one watches them too. */

import { describe, expect, it } from 'vitest';
import type { SallyEvent } from '../../src/protocol/events.ts';
import { followWireEvents } from '../../src/sdk/events.ts';
import { startSally } from '../support/cli.ts';
import { type TestDaemon, testDaemon } from '../support/daemon.ts';
import { imageFlags } from '../support/engine-under-test.ts';

type StateEvent = Extract<SallyEvent, { type: 'sandbox.state' }>;

async function untilState({ client }: TestDaemon, to: StateEvent['to']): Promise<StateEvent> {
  for await (const event of followWireEvents(client, { since: 0 })) {
    if (event.type === 'sandbox.state' && event.to === to) return event;
  }
  throw new Error('the events ended');
}

describe('[A16] after its daemon was killed', () => {
  it('a sandbox is stopped when it was idle for its time', async () => {
    const daemon = await testDaemon();
    await daemon.make({ idleTtl: '2s' });
    await daemon.kill();
    expect(await untilState(daemon, 'STOPPED')).toMatchObject({
      reason: expect.stringContaining('not used for 2s'),
    });
  });

  it('a sandbox is stopped when its lifetime is over', async () => {
    const daemon = await testDaemon();
    // Longer than a busy machine takes until the sandbox is ready.
    await daemon.make({ maxLifetime: '15s' });
    await daemon.kill();
    expect(await untilState(daemon, 'STOPPED')).toMatchObject({
      reason: expect.stringContaining('lifetime of 15s'),
    });
  });

  it('the sandbox of a `sally run` that was killed with it is removed', async () => {
    const daemon = await testDaemon();
    await daemon.health();
    const run = startSally(['run', ...imageFlags(), '--', 'sh', '-c', 'echo ready; sleep 1000'], {
      env: { SALLYPORT_STATE_DIR: daemon.stateDir },
    });
    await run.said('ready');
    run.child.kill('SIGKILL');
    await daemon.kill();
    await untilState(daemon, 'DELETED');
    expect(await daemon.containers()).toBe(0);
  });
});
