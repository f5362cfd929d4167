/** What the kernel gives only so much of: porter refuses or slows down what needs it, and goes on. */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isSallyportError } from '../../src/protocol/errors.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import {
  type Captured,
  capture,
  collect,
  connectPorter,
  descendants,
  greet,
  listening,
  openRelay,
  type PorterChild,
  plainEnv,
  runIn,
  startPorter,
} from '../support/porter-child.ts';
import { gather } from '../support/porter-files.ts';
import { asRoot, fullSizes, when } from '../support/selection.ts';

function withoutWatches(): readonly string[] {
  const program = join(temporaryFolder(), 'no-watches');
  execFileSync('gcc', [
    '-Os',
    '-o',
    program,
    fileURLToPath(new URL('../support/no-watches.c', import.meta.url)),
  ]);
  return [program];
}

/** Everything that porter waits for: output, input, ends, files, connections both ways, a new host. */
async function worksAsEver(child: PorterChild): Promise<void> {
  const porter = await connectPorter(child);
  expect(
    await runIn(porter, ['sh', '-c', 'cat; echo err >&2; exit 7'], { input: Buffer.alloc(300_000, 'x') }),
  ).toMatchObject({ stdout: 'x'.repeat(300_000), stderr: 'err\n', exitCode: 7 });
  expect((await porter.files.stat('/')).kind).toBe('directory');
  expect(Buffer.concat(await gather(porter.files.read('/proc/self/comm'))).toString()).toContain('porter');
  const server = createServer((socket) => socket.pipe(socket));
  onTestFinished(() => void server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const tunnel = await porter.connect({ host: '127.0.0.1', port: address.port });
  tunnel.end('there and back');
  expect(await collect(tunnel)).toBe('there and back');
  const killed = capture(porter, { argv: ['sh', '-c', 'sleep 1000 & wait'], env: plainEnv, cwd: '/' });
  await killed.exec.started;
  await listening(child);
  const second = await greet(openRelay(child).stream, 2);
  const known = (await second.list()).find(({ stream }) => stream === killed.exec.stream);
  if (known === undefined) throw new Error('porter has forgotten its exec');
  const resumed = second.resume(
    known,
    { stdout: 0, stderr: 0 },
    { write: () => Promise.resolve(), end: () => {} },
  );
  resumed.kill(0);
  expect(await resumed.result).toMatchObject({ killed: true, signal: 9 });
}

describe('without a single epoll watch to be had', () => {
  it('porter does all that it does, and leaves when it is told to', async () => {
    const child = startPorter([], withoutWatches());
    await worksAsEver(child);
    const ended = once(child.child, 'exit');
    child.child.kill('SIGTERM');
    expect(await ended).toEqual([143, null]);
  });

  it('porter does not spin', async () => {
    const porter = await connectPorter(startPorter([], withoutWatches()));
    const unread = capture(porter, { argv: ['cat', '/dev/zero'], env: plainEnv, cwd: '/' });
    await unread.exec.started;
    const ticks = async (): Promise<number> => {
      const { stdout } = await runIn(porter, ['cat', `/proc/${porter.welcome.pid}/stat`]);
      const fields = stdout.replace(/^.*\) /s, '').split(' ');
      return Number(fields[11]) + Number(fields[12]);
    };
    const before = await ticks();
    await runIn(porter, ['sleep', '1']);
    // In hundredths of a second. One that spins takes all of it.
    expect((await ticks()) - before).toBeLessThan(40);
  });
});

/** Takes every watch that its user may have, says so, and holds them until its input ends. */
const hog = `
import os, select, sys, resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
pipes = [os.pipe()[0] for _ in range(400)]
pools = []
try:
    while True:
        pools.append(select.epoll())
        for fd in pipes: pools[-1].register(fd, select.EPOLLIN)
except OSError as error:
    assert error.errno == 28, error
print("taken", flush=True)
sys.stdin.read()
`;

when(asRoot, fullSizes).describe(
  'beside a neighbour of the same user that has taken every epoll watch',
  () => {
    it('porter does all that it does', { timeout: 180_000 }, async () => {
      const uid = 64_777;
      const neighbour = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'] as const;
      const child = startPorter([], neighbour);
      const greeted = await connectPorter(child, 1);
      const taker = spawn(neighbour[0], [...neighbour.slice(1), '/usr/bin/python3', '-c', hog], {
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      onTestFinished(async () => {
        const ended = once(taker, 'exit');
        taker.stdin.end();
        if (taker.exitCode === null) await ended;
      });
      const [first] = await Promise.race([once(taker.stdout, 'data'), once(taker, 'exit')]);
      expect(String(first)).toContain('taken');
      expect((await runIn(greeted, ['echo', 'on'])).stdout).toBe('on\n');
      await worksAsEver(startPorter([], neighbour));
    });
  },
);

describe('with few descriptors', () => {
  const few = ['sh', '-c', 'ulimit -n 96; exec "$@"', 'sh'];

  it('porter refuses what needs one, kills trees, and lets a new host in', async () => {
    const child = startPorter([], few);
    const porter = await connectPorter(child);
    const running: Captured[] = [];
    let refusal: unknown;
    while (refusal === undefined) {
      const next = capture(porter, { argv: ['sh', '-c', 'sleep 1000 & wait'], env: plainEnv, cwd: '/' });
      const failed = await next.exec.started.then(
        () => undefined,
        (error: unknown) => error,
      );
      if (failed === undefined) running.push(next);
      else refusal = failed;
    }
    expect(refusal).toMatchObject({ code: 'exec_start_failed', details: { errno: 24 } });
    expect(running.length).toBeGreaterThan(5);
    // Watches hold their descriptors for good: the last ones are still not theirs.
    const watches = Array.from({ length: 32 }, () => porter.files.watch('/tmp')[Symbol.asyncIterator]());
    const answers = await Promise.allSettled(watches.map((watch) => watch.next()));
    const refused = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
    expect(refused.length).toBeGreaterThan(0);
    for (const reason of refused) expect(isSallyportError(reason)).toBe(true);
    await expect(porter.connect({ host: '127.0.0.1', port: 1 })).rejects.toMatchObject({
      code: 'tunnel_failed',
    });
    for (const { exec } of running) exec.kill(0);
    for (const { exec } of running) expect(await exec.result).toMatchObject({ killed: true });
    expect((await runIn(porter, ['echo', 'on'])).stdout).toBe('on\n');
    await listening(child);
    const second = await greet(openRelay(child).stream, 2);
    expect((await runIn(second, ['echo', 'on'])).stdout).toBe('on\n');
    // Workers of the first host are being killed, and helpers that just finished wait a second for more.
    await expect.poll(() => descendants(child.child.pid ?? 0), { timeout: 10_000 }).toEqual([]);
  });
});
