import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { StdinStream } from './stdin-stream.ts';

function line() {
  const sent: string[] = [];
  return {
    sent,
    send: (data: Buffer) => void sent.push(data.toString()),
    end: () => void sent.push('<end>'),
  };
}

describe('the input of a command', () => {
  it('sends again on a new connection exactly what the sandbox has not taken', () => {
    const stdin = new StdinStream();
    const first = line();
    stdin.connect(first, 0);
    stdin.write('abc');
    stdin.write('def');
    stdin.acknowledge(2);
    stdin.disconnect();
    stdin.write('ghi');
    stdin.end();
    const second = line();
    stdin.connect(second, 4);
    expect(first.sent.join('')).toBe('abcdef');
    expect(second.sent.join('')).toBe('efghi<end>');
  });

  it('ends after its bytes, also when a new connection brings the room that the writer waited for', async () => {
    const stdin = new StdinStream();
    stdin.connect(line(), 0);
    stdin.end(Buffer.alloc(300_000, 'x'));
    stdin.disconnect();
    const second = line();
    const finished = once(stdin, 'finish');
    stdin.connect(second, 100_000);
    await finished;
    expect(second.sent.slice(0, -1).join('')).toHaveLength(200_000);
    expect(second.sent.filter((words) => words === '<end>')).toHaveLength(1);
    expect(second.sent.at(-1)).toBe('<end>');
  });

  it('holds up its writer while too much is not taken', async () => {
    const stdin = new StdinStream();
    stdin.connect(line(), 0);
    expect(stdin.write(Buffer.alloc(300_000))).toBe(false);
    const drained = once(stdin, 'drain');
    stdin.acknowledge(100_000);
    await drained;
  });

  it('of an attached command begins where the writer before it stopped', () => {
    const stdin = new StdinStream();
    stdin.beginAt(1000);
    const only = line();
    stdin.connect(only, 1000);
    stdin.write('x');
    stdin.acknowledge(1001);
    const next = line();
    stdin.connect(next, 1001);
    expect(only.sent).toEqual(['x']);
    expect(next.sent).toEqual([]);
  });

  it('lets a blocked writer go when nobody reads any more', async () => {
    const stdin = new StdinStream();
    const written = new Promise((resolve) => stdin.write(Buffer.alloc(600_000), resolve));
    stdin.close();
    await written;
    expect(stdin.destroyed).toBe(true);
  });
});
