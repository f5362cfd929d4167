/** Doors, epochs and what a host that dies leaves to the next one. */

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { type ExecRequest, encodeExec } from '../../src/porter/exec.ts';
import { encodeFrame, FrameDecoder, frameType } from '../../src/porter/frame.ts';
import { greeting } from '../../src/porter/greeting.ts';
import { OutputQueue } from '../../src/porter/output-queue.ts';
import { queueSink } from '../../src/porter/output-sink.ts';
import type { Porter } from '../../src/porter/porter.ts';
import {
  capture,
  collect,
  connectPorter,
  greet,
  listening,
  openRelay,
  type PorterChild,
  plainEnv,
  runIn,
  startPorter,
  Transcript,
  testToken,
} from '../support/porter-child.ts';
import { isRoot } from '../support/requires.ts';

const forGood = (): PorterChild => startPorter([]);
const ended = (stream: Duplex): Promise<void> =>
  new Promise((resolve) => {
    stream.resume();
    stream.once('close', () => resolve());
  });
const hello = (epoch: number, token: Buffer = testToken): Buffer =>
  encodeFrame({ type: frameType.hello, epoch, stream: 0, payload: greeting(token), more: false });
const request = (argv: ExecRequest['argv'], more: Partial<ExecRequest> = {}): ExecRequest => ({
  argv,
  env: plainEnv,
  cwd: '/',
  ...more,
});

/** The processes of a resumed exec's output, as text. */
async function resumeAll(porter: Porter, stream: number, from = { stdout: 0, stderr: 0 }): Promise<string> {
  const known = (await porter.list()).find((row) => row.stream === stream);
  if (known === undefined) throw new Error(`exec ${stream} is not known`);
  const stdout = new OutputQueue();
  const exec = porter.resume(known, from, queueSink(stdout, new OutputQueue()));
  const [text] = await Promise.all([collect(stdout), exec.result]);
  return text;
}

describe('a second host', () => {
  it('takes over by the relay, and the first is told so', async () => {
    const child = forGood();
    const first = await connectPorter(child);
    const running = capture(first, request(['sleep', '1000']));
    await running.exec.started;
    const second = await greet(openRelay(child).stream, 2);
    expect(await first.closed).toMatchObject({ code: 'porter_superseded' });
    await expect(running.exec.result).rejects.toMatchObject({ code: 'porter_superseded' });
    expect(await second.list()).toMatchObject([{ stream: 1, state: 'running' }]);
    expect((await runIn(second, ['echo', 'new host'])).stdout).toBe('new host\n');
  });

  it('with an epoch that is not higher is refused and told the current one', async () => {
    const child = forGood();
    const first = await connectPorter(child, 7);
    for (const epoch of [1, 7]) {
      await expect(greet(openRelay(child).stream, epoch)).rejects.toMatchObject({
        code: 'porter_superseded',
        details: { epoch: 7 },
      });
    }
    await first.ping();
  });

  it('with a wrong token is refused, and the one before stays', async () => {
    const child = forGood();
    const first = await connectPorter(child);
    for (const token of [
      Buffer.alloc(32),
      testToken.subarray(0, 16),
      Buffer.concat([testToken, testToken]),
    ]) {
      await expect(greet(openRelay(child).stream, 2, token)).rejects.toMatchObject({
        code: 'porter_protocol',
        details: { reason: 4 },
      });
    }
    await first.ping();
  });

  it('that speaks another major version is told which one porter speaks', async () => {
    const child = forGood();
    await connectPorter(child);
    const { stream } = openRelay(child);
    const payload = greeting(testToken);
    payload.writeUInt16LE(9, 0);
    stream.write(encodeFrame({ type: frameType.hello, epoch: 2, stream: 0, payload, more: false }));
    const frames = [...new FrameDecoder().push((await once(stream, 'data'))[0])];
    expect(frames[0]?.type).toBe(frameType.refused);
    expect(frames[0]?.payload.readUInt16LE(0)).toBe(1);
    expect(frames[0]?.payload.readUInt32LE(4)).toBe(1);
  });

  it('gets from each offset exactly what follows it', async () => {
    const child = forGood();
    let epoch = 1;
    let porter = await connectPorter(child, epoch);
    for (const from of [0, 1, 5, 10]) {
      const stream = porter.reserveStream();
      await capture(porter, request(['printf', '0123456789']), stream).exec.started;
      // A start may be told before the output is there, and what is not there cannot be resumed from.
      while ((await porter.list()).find((exec) => exec.stream === stream)?.stdout.next !== 10);
      porter = await greet(openRelay(child).stream, ++epoch);
      expect(await resumeAll(porter, stream, { stdout: from, stderr: 0 })).toBe('0123456789'.slice(from));
    }
  });

  it('that resumes from where nothing is kept loses its connection, and porter goes on', async () => {
    const child = forGood();
    const porter = await connectPorter(child);
    await capture(porter, request(['printf', 'abc'])).exec.started;
    const second = await greet(openRelay(child).stream, 2);
    await expect(resumeAll(second, 1, { stdout: 4, stderr: 0 })).rejects.toMatchObject({
      code: 'porter_gone',
    });
    const third = await greet(openRelay(child).stream, 3);
    expect(await resumeAll(third, 1)).toBe('abc');
  });

  it('finds what exited while nobody was there, with its output and exit code', async () => {
    const child = forGood();
    const first = await connectPorter(child);
    const { exec } = capture(
      first,
      request(['sh', '-c', 'read line; echo "$line"; exit 5'], { stdin: true }),
    );
    await exec.started;
    await exec.write(Buffer.from('by hand\n'));
    first.close();
    const second = await greet(openRelay(child).stream, 2);
    const [known] = await second.list();
    expect(known).toMatchObject({ stream: 1, inputBytes: 8 });
    const stdout = new OutputQueue();
    if (known === undefined) throw new Error('the exec is not known');
    const resumed = second.resume(known, { stdout: 0, stderr: 0 }, queueSink(stdout, new OutputQueue()));
    expect(await collect(stdout)).toBe('by hand\n');
    expect(await resumed.result).toMatchObject({ exitCode: 5 });
    resumed.forget();
    // Its supervisor may take a moment longer to go.
    expect((await second.list()).filter(({ state }) => state !== 'forgotten')).toEqual([]);
  });
});

describe('the relay', () => {
  it('closes a connection that does not greet within 10 s, and lets eight of them wait at most', async () => {
    const child = forGood();
    const porter = await connectPorter(child);
    const started = performance.now();
    const silent = Array.from({ length: 8 }, () => openRelay(child).stream);
    const closed = silent.map(ended);
    // A relay that got through has its connection accepted when porter answers the next ping.
    await Promise.all(
      silent.map((stream) => new Promise((resolve) => stream.write(Buffer.from('S'), resolve))),
    );
    await porter.ping();
    await Promise.race([ended(openRelay(child).stream), Promise.race(closed)]);
    expect(performance.now() - started).toBeLessThan(9_000);
    await Promise.all(closed);
    expect(performance.now() - started).toBeGreaterThan(9_000);
    expect((await greet(openRelay(child).stream, 2)).welcome.highestStream).toBe(0);
  }, 30_000);

  it('is the connection: when it is killed porter goes on without that host, and waits for the next', async () => {
    const child = forGood();
    await connectPorter(child);
    const relay = openRelay(child);
    const second = await greet(relay.stream, 2);
    relay.child.kill('SIGKILL');
    expect(await second.closed).toMatchObject({ code: 'porter_gone' });
    await (await greet(openRelay(child).stream, 3)).ping();
  });

  it.each([
    ['nothing', 's.send(b"x")'],
    ['bytes of a greeting alone', `s.send(bytes.fromhex("${hello(2).toString('hex')}"))`],
    ['one descriptor', 'socket.send_fds(s, [b"x"], [r])'],
    ['a file and a folder', 'socket.send_fds(s, [b"x"], [os.open("/etc/passwd", 0), os.open("/", 0)])'],
    ['more than two', 'socket.send_fds(s, [b"x"], [r, w, r])'],
  ])('that hands over %s is closed, and nothing of it stays', async (_what, act) => {
    const child = forGood();
    const porter = await connectPorter(child);
    const pid = child.child.pid ?? 0;
    await porter.ping();
    // Nobody else may look at porter's.
    const descriptors = (): number => (isRoot ? readdirSync(`/proc/${pid}/fd`).length : 0);
    const before = descriptors();
    const script = `import os, socket
r, w = os.pipe()
s = socket.socket(socket.AF_UNIX)
s.connect('\\0sallyport-porter.${pid}')
${act}
s.settimeout(30)
try: print(s.recv(1))
except ConnectionResetError: print(b'')`;
    const { stdout } = await promisify(execFile)('python3', ['-c', script]);
    expect(stdout).toBe("b''\n");
    await porter.ping();
    expect(descriptors()).toBe(before);
  });

  it('ends when porter ends', async () => {
    const child = forGood();
    await connectPorter(child);
    const relay = openRelay(child);
    await greet(relay.stream, 2);
    const over = once(relay.child, 'exit');
    child.child.kill('SIGTERM');
    expect((await over)[0]).toBe(0);
  });
});

describe('a host that dies in the middle of a frame', () => {
  it('its first greeting, at every byte: the next host comes by the relay', async () => {
    const whole = hello(1);
    for (let length = 0; length < whole.length; length++) {
      const child = forGood();
      await listening(child);
      child.child.stdin?.end(whole.subarray(0, length));
      const porter = await greet(openRelay(child).stream, 2);
      await porter.ping();
      porter.close();
      child.child.kill('SIGKILL');
    }
  });

  it('a later greeting, at every byte: the one before stays, and the next one comes', async () => {
    const child = forGood();
    const first = await connectPorter(child);
    const whole = hello(2);
    for (let length = 0; length < whole.length; length++) {
      const relay = openRelay(child);
      const over = once(relay.child, 'exit');
      relay.child.stdin?.end(whole.subarray(0, length));
      relay.stream.resume();
      await over;
      await first.ping();
    }
    await (await greet(openRelay(child).stream, 2)).ping();
  });

  it('a request to start a program, at every byte: it is started at most once', async () => {
    const child = forGood();
    let epoch = 1;
    let porter = await connectPorter(child, epoch);
    const message = encodeExec(request(['sh', '-c', 'echo once']));
    const length = 20 + message.length;
    for (let cut = 0; cut <= length; cut++) {
      const stream = cut + 1;
      const relay = openRelay(child);
      const payload = encodeFrame({
        type: frameType.exec,
        epoch: ++epoch,
        stream,
        payload: message,
        more: false,
      });
      relay.child.stdin?.end(Buffer.concat([hello(epoch), payload.subarray(0, cut)]));
      relay.stream.resume();
      await once(relay.child, 'exit');
      porter = await greet(openRelay(child).stream, ++epoch);
      const known = await porter.list();
      expect(known.filter(({ state }) => state !== 'forgotten').length).toBeLessThanOrEqual(
        cut === length ? 1 : 0,
      );
      // Whether it arrived or not, asking again starts it if, and only if, it was not started.
      const { exec, stdout } = capture(porter, request(['sh', '-c', 'echo once']), stream);
      expect(await collect(stdout)).toBe('once\n');
      await exec.result;
      exec.forget();
      await porter.ping();
    }
  }, 60_000);
});

describe('a request that is repeated', () => {
  it('starts its program once', async () => {
    const child = forGood();
    const first = await connectPorter(child);
    const count = request(['sh', '-c', 'echo started; read end'], { stdin: true });
    const pid = await capture(first, count, 1).exec.started;
    const second = await greet(openRelay(child).stream, 2);
    const { exec, stdout } = capture(second, count, 1);
    expect(await exec.started).toBe(pid);
    await new Transcript(stdout).until('started\n');
    expect(await second.list()).toHaveLength(1);
  });

  it('is refused after its exec was forgotten', async () => {
    const porter = await connectPorter(forGood());
    await runIn(porter, ['true']);
    const { exec } = capture(porter, request(['true']), 1);
    await expect(exec.started).rejects.toMatchObject({ code: 'exec_start_failed', details: { errno: 17 } });
  });

  it('is refused after its exec was forgotten, though processes of it are left', async () => {
    const porter = await connectPorter(forGood());
    await runIn(porter, ['sh', '-c', 'sleep 1000 & exit 0']);
    expect(await porter.list()).toMatchObject([{ stream: 1, state: 'forgotten' }]);
    const { exec } = capture(porter, request(['true']), 1);
    await expect(exec.started).rejects.toMatchObject({ details: { errno: 17 } });
  });

  it('is refused also when 4,096 others were forgotten since', async () => {
    const porter = await connectPorter(forGood());
    for (let done = 0; done < 4_100; done += 50) {
      await Promise.all(Array.from({ length: 50 }, () => runIn(porter, ['/bin/true'])));
    }
    const { exec } = capture(porter, request(['true']), 1);
    await expect(exec.started).rejects.toMatchObject({ details: { errno: 17 } });
  }, 60_000);

  it('may be tried again when it could not be started', async () => {
    const porter = await connectPorter(forGood());
    await expect(capture(porter, request(['/nowhere']), 1).exec.started).rejects.toMatchObject({
      details: { errno: 2 },
    });
    expect(await collect(capture(porter, request(['echo', 'yes']), 1).stdout)).toBe('yes\n');
  });
});
