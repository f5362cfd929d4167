import { describe, expect, it } from 'vitest';
import { connectionTo, httpServer } from '../../../test/support/little-engine.ts';
import { stopBox } from './stop-box.ts';

/** An engine whose container runs, and that never answers a stop. */
async function stuckEngine(): Promise<{ readonly path: string; readonly calls: string[] }> {
  const calls: string[] = [];
  const path = await httpServer((request, response) => {
    const call = (request.url ?? '').replace(/^\/v1\.41\/containers\/box\//, '');
    calls.push(call);
    if (call.startsWith('stop')) return;
    response.writeHead(call === 'json' ? 200 : 204, { 'Content-Type': 'application/json' });
    if (call !== 'json') response.end();
    else
      response.end(
        JSON.stringify({
          Id: 'box',
          Name: '/box',
          Image: 'image',
          Config: { Labels: {} },
          State: { Status: 'running', Running: true, ExitCode: 0, OOMKilled: false },
          HostConfig: {},
        }),
      );
  });
  return { path, calls };
}

describe('stopBox', () => {
  it('kills what an engine that is stuck does not stop, and asks for whole seconds of grace, rounded up', async () => {
    const { path, calls } = await stuckEngine();
    await stopBox(connectionTo(path), 'box', 1, 100);
    expect(calls).toEqual(['json', 'stop?t=1', 'kill?signal=KILL']);
  });
});
