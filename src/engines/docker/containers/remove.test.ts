import { describe, expect, it } from 'vitest';
import { connectionTo, httpServer } from '../../../../test/support/little-engine.ts';
import { removeContainer } from './remove.ts';

/** Never answers a removal, and a wait only after some that it left without answer. */
async function busyEngine(status: string, unanswered: number) {
  const asked: string[] = [];
  const path = await httpServer((request, response) => {
    const what =
      `${request.method} ${request.url?.replace(/^\/v[\d.]+\/containers\/box\/?|\?.*$/g, '')}`.trim();
    asked.push(what);
    response.setHeader('Content-Type', 'application/json');
    if (what === 'GET json') {
      const State = { Status: status, Running: false, ExitCode: 0, OOMKilled: false };
      response.end(
        JSON.stringify({
          Id: 'box',
          Name: '/box',
          Image: 'i',
          Config: { Labels: null },
          State,
          HostConfig: {},
        }),
      );
    } else if (what === 'POST wait' && asked.filter((each) => each === what).length > unanswered) {
      response.end('{"StatusCode":0}');
    }
  });
  return { connection: connectionTo(path), asked };
}

describe('a removal that takes longer than the patience with a silent engine', () => {
  it('is waited for as long as the engine says that it is at it', async () => {
    const { connection, asked } = await busyEngine('removing', 2);
    await removeContainer(connection, 'box', { timeoutMs: 300 });
    expect(asked.filter((each) => each.startsWith('DELETE'))).toHaveLength(1);
    const count = (what: string): number => asked.filter((each) => each === what).length;
    expect(count('POST wait')).toBeGreaterThanOrEqual(3);
    expect(count('GET json')).toBe(count('POST wait'));
  });

  it('has failed where the container is not being removed', async () => {
    const { connection } = await busyEngine('running', 0);
    await expect(removeContainer(connection, 'box', { timeoutMs: 300 })).rejects.toMatchObject({
      code: 'engine_timeout',
    });
  });
});
