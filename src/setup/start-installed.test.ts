import { describe, expect, it } from 'vitest';
import type { Discovery, FoundEngine } from '../engines/docker/discover.ts';
import { EngineConnection } from '../engines/docker/wire/connection.ts';
import { openTransport } from '../engines/docker/wire/transport.ts';
import { defaultStartTiming, type StartRequest, startInstalled } from './start-installed.ts';
import type { StartWay } from './start-ways.ts';

const endpoint = { kind: 'unix', path: '/nowhere/docker.sock' } as const;
const found: FoundEngine = {
  source: 'test',
  endpoint,
  connection: new EngineConnection(openTransport(endpoint), 'test'),
};

/** Answers from the n-th look on. */
function answersAt(look: number): () => Promise<Discovery> {
  let looks = 0;
  return async () => {
    looks += 1;
    return looks >= look ? { found, attempts: [] } : { attempts: [] };
  };
}

const command = (...words: [string, ...string[]]): StartWay => ({
  kind: 'command',
  name: words.join(' '),
  command: words,
});

function request(more: Partial<StartRequest>): StartRequest {
  return {
    ways: [],
    discover: answersAt(Number.POSITIVE_INFINITY),
    startPrivate: async () => {},
    environment: { PATH: '/usr/bin:/bin' },
    progress: () => {},
    timing: { pollMs: 5, waitMs: 60 },
    ...more,
  };
}

describe('startInstalled', () => {
  it('[C3] looks every 2 s for up to 45 s, unless it is told otherwise', () => {
    expect(defaultStartTiming).toEqual({ pollMs: 2000, waitMs: 45_000 });
  });

  it('[C3] looks again and again until the started engine answers, and reports each look', async () => {
    const messages: string[] = [];
    const result = await startInstalled(
      request({
        ways: [command('true')],
        discover: answersAt(3),
        timing: { pollMs: 5, waitMs: 10_000 },
        progress: ({ message }) => messages.push(message),
      }),
    );
    expect(result?.found).toBe(found);
    expect(messages[0]).toBe('starting true');
    expect(messages.filter((message) => message.startsWith('waiting for the engine'))).toHaveLength(3);
  });

  it('[C3] tries the next way when the command of one fails, and says why each failed', async () => {
    // So long between two looks that only the end of a command brings one.
    const timing = { pollMs: 600_000, waitMs: 600_000 };
    const failing = command('sh', '-c', 'echo no such machine >&2; exit 3');
    const ways = [failing, command('true')];
    const result = await startInstalled(request({ ways, discover: answersAt(2), timing }));
    expect(result?.way).toEqual(command('true'));
    const hopeless = request({ ways: [failing, command('/no/such/program')], timing });
    await expect(startInstalled(hopeless)).rejects.toMatchObject({
      code: 'engine_start_failed',
      message: expect.stringMatching(/no such machine.*ENOENT/),
    });
  });

  it('[C3] gives up when the time is over, and looks afresh when it is asked again', async () => {
    const never = request({ ways: [command('true')] });
    await expect(startInstalled(never)).rejects.toMatchObject({
      code: 'engine_start_failed',
      message: expect.stringContaining('no answer within'),
    });
    const again = await startInstalled({ ...never, discover: answersAt(1) });
    expect(again?.found).toBe(found);
  });

  it('[C3] ends the command and says cancelled when the caller gives up', async () => {
    const gaveUp = new AbortController();
    const starting = startInstalled(
      request({
        ways: [command('sleep', '600')],
        timing: { pollMs: 5, waitMs: 600_000 },
        signal: gaveUp.signal,
        progress: ({ message }) => message.startsWith('waiting') && gaveUp.abort(),
      }),
    );
    await expect(starting).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('says the command where only root may start what is installed', async () => {
    const ways: StartWay[] = [
      { kind: 'advice', name: 'Docker Engine', commandLine: 'sudo systemctl start docker' },
    ];
    await expect(startInstalled(request({ ways }))).rejects.toMatchObject({
      code: 'engine_unreachable',
      advice: expect.stringContaining('sudo systemctl start docker'),
    });
  });

  it('has nothing to say where nothing is installed', async () => {
    expect(await startInstalled(request({}))).toBeUndefined();
  });
});
