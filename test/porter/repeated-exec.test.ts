import { spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { porterBinaryPath } from '../../src/porter/binary.ts';
import { type ExecRequest, encodeExec } from '../../src/porter/exec.ts';
import { frameType } from '../../src/porter/frame.ts';
import { PorterLink } from '../../src/porter/link.ts';
import { OutputQueue } from '../../src/porter/output-queue.ts';
import { queueSink } from '../../src/porter/output-sink.ts';
import { Porter } from '../../src/porter/porter.ts';
import { collect, nativeArchitecture, startPorter } from '../support/porter-child.ts';

const env = { PATH: '/usr/local/bin:/usr/bin:/bin' };

function relayTo(pid: number): Duplex {
  const child = spawn(porterBinaryPath(nativeArchitecture), ['relay', String(pid)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  child.stdin.on('error', () => {});
  return Duplex.from({ readable: child.stdout, writable: child.stdin });
}

describe('an exec that is asked for again', () => {
  it('by a new host is told from the first byte that nobody acknowledged', async () => {
    const started = startPorter([]);
    const token = Buffer.alloc(32, 7);
    const first = await Porter.open(started.stream, { epoch: 1, token, timeoutMs: 10_000 });
    const request: ExecRequest = { argv: ['sh', '-c', 'yes | head -c 600000'], env, cwd: '/' };
    // Nobody takes anything, so nothing is acknowledged, and a whole window is under way when the host goes.
    const lost = new OutputQueue();
    const exec = first.exec(request, queueSink(lost, new OutputQueue()));
    await exec.started;
    await lost[Symbol.asyncIterator]().next();
    first.close();
    const second = await Porter.open(relayTo(started.child.pid ?? -1), {
      epoch: 2,
      token,
      timeoutMs: 10_000,
    });
    onTestFinished(() => second.close());
    const stdout = new OutputQueue();
    const again = second.exec(request, queueSink(stdout, new OutputQueue()), exec.stream);
    const [text, result] = await Promise.all([collect(stdout), again.result]);
    expect(text).toBe('y\n'.repeat(300_000));
    expect(result.exitCode).toBe(0);
  });
});

describe('an exec that is forgotten without an acknowledgement', () => {
  it('leaves the connection its whole window', async () => {
    const options = { epoch: 1, token: Buffer.alloc(32), timeoutMs: 10_000 };
    const { link } = await PorterLink.open(startPorter().stream, options);
    onTestFinished(() => link.close());
    const request = encodeExec({ argv: ['head', '-c', '15000', '/dev/zero'], env, cwd: '/' });
    // Each leaves 15 KB under way: were they not given back, the last ones would stand still.
    for (let stream = 1; stream <= 60; stream++) {
      await new Promise<void>((resolve, reject) => {
        link.own(stream, {
          onFrame: (type) => {
            if (type === frameType.exit) resolve();
          },
          fail: reject,
        });
        link.sendLong(frameType.exec, stream, request);
      });
      link.send(frameType.forget, stream);
    }
    await link.ping();
  });
});
