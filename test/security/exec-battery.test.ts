/** Commands that do their worst, through the daemon: how they end, what they print, what they leave, and who is gone meanwhile. */

import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { ExecView } from '../../src/protocol/views.ts';
import type { ExecProcess } from '../../src/sdk/exec-process.ts';
import type { Sandbox } from '../../src/sdk/sandbox.ts';
import { killFromOutside } from '../support/box-engine.ts';
import { testDaemon } from '../support/daemon.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { makeSandbox, pidOf, processFigures, timed } from '../support/daemon-world.ts';
import { testEngine } from '../support/engine.ts';
import { onDocker } from '../support/engine-under-test.ts';
import { full } from '../support/requires.ts';
import { openSandboxes, runInSandbox, startInSandbox } from '../support/sandboxes.ts';
import { dockerAlone, fullSizes, when, withLimits } from '../support/selection.ts';

async function hashOf(
  chunks: AsyncIterable<Buffer>,
): Promise<{ readonly bytes: number; readonly hash: string }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of chunks) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { bytes, hash: hash.digest('hex') };
}

async function firstWords(running: ExecProcess): Promise<string> {
  for await (const chunk of running.stdout) return chunk.toString();
  throw new Error('it ended without a word');
}

/** How many processes of this name there are inside. */
async function countOf(box: Sandbox, name: string): Promise<number> {
  const { stdout } = await box.sh('cat /proc/[0-9]*/comm');
  return stdout.split('\n').filter((line) => line === name).length;
}

describe('[G5][R10] how a command ends', () => {
  test('exit codes, signals, and what could not be started at all', async () => {
    const daemon = await (await daemonHome()).start();
    await using box = await makeSandbox(daemon);
    for (const code of [0, 1, 42, 124, 125, 126, 127, 137, 255]) {
      expect(await box.sh(`exit ${code}`)).toMatchObject({
        exitCode: code,
        oomKilled: false,
        timedOut: false,
      });
    }
    for (const [name, number] of [
      ['SIGTERM', 15],
      ['SIGKILL', 9],
      ['SIGSEGV', 11],
      ['SIGPIPE', 13],
    ] as const) {
      const outcome = await box.sh(`kill -${number} $$`);
      expect(outcome).toMatchObject({ signal: name, oomKilled: false, killed: false });
      expect(outcome.exitCode).toBeUndefined();
      // A shell's word for a child that died so.
      expect(await box.sh(`sh -c 'kill -${number} $$'; exit $?`)).toMatchObject({ exitCode: 128 + number });
    }
    expect(await box.sh('/no/such/program')).toMatchObject({ exitCode: 127 });
    expect(await box.sh('/etc/passwd')).toMatchObject({ exitCode: 126 });
    const [ENOENT, EACCES, E2BIG] = [2, 13, 7];
    const refused: readonly [readonly string[], object, number][] = [
      [['no-such-program'], {}, ENOENT],
      [['/etc/passwd'], {}, EACCES],
      [['/tmp'], {}, EACCES],
      [['true'], { cwd: '/no/such/folder' }, ENOENT],
      // On bubblewrap the home of this machine's root is not even there.
      [['true'], { cwd: '/root/.ssh' }, onDocker ? EACCES : ENOENT],
      [['true', 'x'.repeat(200_000)], {}, E2BIG],
    ];
    for (const [argv, options, errno] of refused) {
      const failed = box.exec(argv, options);
      await expect(failed, `${argv[0]} ${JSON.stringify(options)}`).rejects.toMatchObject({
        code: 'exec_start_failed',
        details: expect.objectContaining({ errno }),
      });
    }
    await expect(box.exec(['true'], { cwd: '/no/such/folder' })).rejects.toMatchObject({
      message: expect.stringMatching(/^true could not be started in \/no\/such\/folder: /),
      advice: expect.stringContaining('that the folder /no/such/folder exists'),
    });
  });

  when(withLimits).test(
    '[G5] out of memory is told apart from a kill and from an exit with 137',
    async () => {
      const daemon = await (await daemonHome()).start();
      await using box = await makeSandbox(daemon, { limits: { memory: '64m' } });
      const hungry = ['python3', '-c', 'x = bytearray(200 * 2**20)'];
      expect(await box.sh('exit 137')).toMatchObject({ exitCode: 137, oomKilled: false });
      expect(await box.exec(hungry)).toMatchObject({ signal: 'SIGKILL', oomKilled: true });
      expect(await box.sh('kill -9 $$')).toMatchObject({ signal: 'SIGKILL', oomKilled: false });
      // A child that was killed for it, told by the shell with 137.
      expect(await box.sh(`python3 -c 'x = bytearray(200 * 2**20)'; exit $?`)).toMatchObject({
        exitCode: 137,
        oomKilled: true,
      });
      expect(await box.sh('exit 137')).toMatchObject({ oomKilled: false });
      const limited = await box.exec(
        ['python3', '-c', 'import signal; x = bytearray(48 * 2**20); signal.pause()'],
        {
          memoryLimitBytes: 24 * 2 ** 20,
        },
      );
      expect(limited.info).toMatchObject({ memoryLimitExceeded: true, oomKilled: false });
    },
  );

  // Bubblewrap needs no other connection.
  when(dockerAlone).test(
    '[G5] out of memory is seen also while the sandbox gets another connection',
    async () => {
      const { make } = await openSandboxes();
      const sandbox = await make({ spec: { limits: { memory: '64m' } } });
      const hungry = ['python3', '-c', 'x = bytearray(200 * 2**20)'];
      const ends: boolean[] = [];
      const run = async (): Promise<void> => {
        const { exec } = await runInSandbox(sandbox, hungry);
        ends.push(exec.oom_killed);
      };
      // A new sandbox leaves the attached stream for a relay by itself, after a second.
      do await run();
      while (sandbox.record.epoch < 2);
      await run();
      expect(ends).toEqual(ends.map(() => true));
    },
  );

  test('what it leaves in the background does not hold the call', async () => {
    const daemon = await (await daemonHome()).start();
    await using box = await makeSandbox(daemon);
    const { value, ms } = await timed(box.sh('sleep 1000 & setsid sleep 1000 & echo done'));
    expect(value).toMatchObject({
      exitCode: 0,
      stdout: 'done\n',
      info: { leftBehind: 2, outputIncomplete: true },
    });
    expect(ms).toBeLessThan(30_000);
  });

  test('a working directory that is deleted under it, and one that is gone before the next', async () => {
    const daemon = await (await daemonHome()).start();
    await using box = await makeSandbox(daemon);
    const cwd = '/tmp/work';
    await box.exec(['mkdir', cwd], { check: true });
    const script = 'echo in; read line; ls; echo $line';
    await using inside = await box.spawn(['sh', '-c', script], { stdin: true, cwd });
    const words: string[] = [];
    for await (const chunk of inside.stdout) {
      words.push(chunk.toString());
      if (words.length > 1) continue;
      await box.exec(['rmdir', cwd], { check: true });
      inside.stdin.end('still here\n');
    }
    expect(words.join('')).toBe('in\nstill here\n');
    await expect(box.exec(['true'], { cwd })).rejects.toMatchObject({
      code: 'exec_start_failed',
      message: expect.stringContaining(cwd),
    });
    expect((await box.exec(['pwd'])).stdout).toBe('/home/sally\n');
  });
});

describe('[G5] the deadline reaches every descendant', () => {
  const evaders: Readonly<Record<string, string>> = {
    child: 'sleep 1000',
    grandchild: 'sh -c "sh -c \'sleep 1000; true\'; true"',
    setsid: 'setsid sleep 1000',
    'env -i setsid': 'env -i setsid sleep 1000',
    nohup: 'nohup sleep 1000',
    'double fork': 'sh -c "(setsid sleep 1000 & ) & exit"',
    'TERM ignored': 'sh -c "trap \'\' TERM HUP INT; sleep 1000; sleep 1000"',
    'a stopped one': 'sh -c "kill -STOP \\$\\$; sleep 1000"',
  };

  test('all that hide are gone when the call returns, and only they', async () => {
    const daemon = await (await daemonHome()).start();
    await using box = await makeSandbox(daemon);
    await using innocent = await box.spawn(['sh', '-c', 'echo on; exec tail -f /dev/null'], {
      background: true,
    });
    await firstWords(innocent);
    const script = `${Object.values(evaders)
      .map((line) => `${line} >/dev/null 2>&1 </dev/null &`)
      .join('\n')}\necho started; trap '' TERM; sleep 1000; sleep 1000`;
    const { value, ms } = await timed(box.sh(script, { timeoutMs: 1500, graceMs: 300 }));
    expect(value).toMatchObject({ timedOut: true, oomKilled: false, stdout: 'started\n' });
    expect(ms).toBeLessThan(10_000);
    expect(await countOf(box, 'sleep')).toBe(0);
    expect(await countOf(box, 'tail')).toBe(1);
    // The same without a deadline leaves some of them: they do hide.
    await box.sh('setsid sleep 1000 & env -i setsid sleep 1000 & exit');
    expect(await countOf(box, 'sleep')).toBe(2);
  });

  test('without a grace, and by a kill of the client, likewise', async () => {
    const daemon = await (await daemonHome()).start();
    await using box = await makeSandbox(daemon);
    const script = `${Object.values(evaders)
      .map((line) => `${line} >/dev/null 2>&1 </dev/null &`)
      .join('\n')}\necho started; sleep 1000`;
    const running = await box.spawn(['sh', '-c', script]);
    expect(await firstWords(running)).toBe('started\n');
    await running.kill(0);
    expect(await running.wait()).toMatchObject({ killed: true, timedOut: false });
    expect(await countOf(box, 'sleep')).toBe(0);
  });
});

describe('[G5] bytes are bytes', () => {
  test('10 MB of binary input come back as they were, also over daemons that are killed meanwhile', async () => {
    const { make, kill } = await testDaemon();
    await using box = await make();
    const input = randomBytes(10 * 2 ** 20);
    await using echo = await box.spawn(['cat'], { stdin: true });
    echo.stdin.end(input);
    const back = createHash('sha256');
    let bytes = 0;
    let kills = 0;
    for await (const chunk of echo.stdout) {
      back.update(chunk);
      bytes += chunk.length;
      // In the middle of both directions.
      if (bytes > (kills + 1) * 3 * 2 ** 20 && kills < 3) {
        kills++;
        await kill();
      }
    }
    expect({ kills, bytes, hash: back.digest('hex') }).toEqual({
      kills: 3,
      bytes: input.length,
      hash: createHash('sha256').update(input).digest('hex'),
    });
    expect(await echo.wait()).toMatchObject({ exitCode: 0, totalBytes: { stdout: input.length, stderr: 0 } });
  });

  test('200 KB of arguments arrive whole, and output that is no text is not changed', async () => {
    const daemon = await (await daemonHome()).start();
    await using box = await makeSandbox(daemon);
    const parts = Array.from({ length: 4 }, (_, at) => String(at).repeat(50_000));
    const echoed = await box.exec(['printf', '%s', ...parts]);
    expect(echoed.bytes.stdout.equals(Buffer.from(parts.join('')))).toBe(true);
    const odd = await box.exec(['printf', '\\377\\376\\000\\303(\\n']);
    expect(odd.bytes.stdout).toEqual(Buffer.from([0xff, 0xfe, 0x00, 0xc3, 0x28, 0x0a]));
    const words = ['', ' ', '-n', '$(id)', '`id`', '"', "'", '\n', 'ä€😀', '*'];
    expect((await box.exec(['printf', '[%s]', ...words])).stdout).toBe(
      words.map((word) => `[${word}]`).join(''),
    );
  });
});

describe('[G5] much output', () => {
  // More than the 64 MiB that are kept of it.
  const megabytes = full ? 300 : 68;
  const total = megabytes * 2 ** 20;

  test('whoever reads along gets every byte; what is kept is head and tail, and says so', async () => {
    const daemon = await (await daemonHome()).start();
    await using box = await makeSandbox(daemon);
    // Numbered lines of 16 bytes, so that a byte lost or doubled shows.
    const script = `awk 'BEGIN { for (i = 0; i < ${total / 16}; i++) printf "%015d\\n", i }'`;
    // Before it begins: nothing else of this process gets its turn meanwhile, and a command whose reader does not come is killed.
    const expected = createHash('sha256');
    for (let line = 0; line < total / 16; ) {
      let block = '';
      for (const end = Math.min(line + 65_536, total / 16); line < end; line++)
        block += `${String(line).padStart(15, '0')}\n`;
      expected.update(block);
    }
    const before = await processFigures(pidOf(daemon));
    await using running = await box.spawn(['sh', '-c', script]);
    expect(await hashOf(running.stdout)).toEqual({ bytes: total, hash: expected.digest('hex') });
    expect(running.droppedBytes).toBe(0);
    const after = await processFigures(pidOf(daemon));
    expect(after.rssBytes - before.rssBytes).toBeLessThan(100 * 2 ** 20);
    const outcome = await running.wait();
    expect(outcome).toMatchObject({ exitCode: 0, truncated: true, totalBytes: { stdout: total } });
    expect(outcome.stdout.length).toBeLessThan(270_000);
    expect(outcome.stdout.startsWith('000000000000000\n000000000000001\n')).toBe(true);
    expect(outcome.stdout.endsWith(`${String(total / 16 - 1).padStart(15, '0')}\n`)).toBe(true);
    const kept: Buffer[] = [];
    for await (const chunk of box.logs(outcome.id, { stream: 'stdout' })) kept.push(chunk);
    const log = Buffer.concat(kept).toString('latin1');
    expect(log.length).toBeLessThanOrEqual(64 * 2 ** 20 + 100);
    expect(log.length).toBeGreaterThan(50 * 2 ** 20);
    const dropped = /\n\[(\d+) bytes of stdout are no longer kept\]\n/.exec(log);
    expect(log.length - (dropped?.[0].length ?? 0) + Number(dropped?.[1])).toBe(total);
  });

  when(fullSizes).test(
    '10 GiB that nobody reads along are kept as head and tail, in bounded memory',
    async () => {
      const daemon = await (await daemonHome()).start();
      await using box = await makeSandbox(daemon);
      const before = await processFigures(pidOf(daemon));
      const bytes = 10 * 2 ** 30;
      const outcome = await box.exec(['head', '-c', String(bytes), '/dev/zero'], { timeoutMs: 900_000 });
      expect(outcome).toMatchObject({ exitCode: 0, truncated: true, totalBytes: { stdout: bytes } });
      const after = await processFigures(pidOf(daemon));
      expect(after.rssBytes - before.rssBytes).toBeLessThan(100 * 2 ** 20);
    },
    900_000,
  );

  test('a reader that comes late gets every byte as well', async () => {
    // Without a daemon: that one gives a reader ten seconds to come, which is too little where the machine is busy.
    const { make, stateDir } = await openSandboxes();
    const box = await make();
    const exec = await startInSandbox(box, ['head', '-c', String(total), '/dev/zero']);
    await exec.expectReader();
    const folder = join(stateDir, 'sandboxes', box.id, 'execs', exec.id);
    // As much as is ever kept; then time for what would be let go of.
    while ((await readdir(folder).catch(() => [])).length < 2 * 16) await runInSandbox(box, ['true']);
    for (let round = 0; round < 50; round++) await runInSandbox(box, ['true']);
    expect(exec.running).toBe(true);
    const late = (await exec.log()).read({ from: { stdout: 0, stderr: 0 }, follow: true, hold: true });
    exec.readerCame();
    let bytes = 0;
    for await (const piece of late) bytes += 'data' in piece ? piece.data.length : Number.NaN;
    expect(bytes).toBe(total);
  });

  test('whoever only waits for the end holds nobody up', async () => {
    const daemon = await (await daemonHome()).start();
    const { client } = daemon;
    await using box = await makeSandbox(daemon);
    const execs = `/v1/sandboxes/${box.id}/execs`;
    const body = { argv: ['head', '-c', String(total), '/dev/zero'] };
    const { id } = await client.json<ExecView>('POST', execs, { body });
    expect(await client.json('GET', `${execs}/${id}/wait`)).toMatchObject({
      stdout: { total_bytes: total, truncated: true },
    });
  });

  test('a slow reader slows its own command and nobody else, and the daemon stays small', async () => {
    const daemon = await (await daemonHome()).start();
    await using box = await makeSandbox(daemon);
    await using other = await makeSandbox(daemon);
    const before = await processFigures(pidOf(daemon));
    await using slow = await box.spawn(['sh', '-c', `head -c ${total} /dev/zero; echo written >&2`]);
    const reading = slow.stdout[Symbol.asyncIterator]();
    let bytes = (await reading.next()).value?.length ?? 0;
    for (let round = 0; round < 40; round++) {
      const { value, ms } = await timed((round % 2 === 0 ? box : other).exec(['echo', 'quick']));
      expect(value.stdout).toBe('quick\n');
      expect(ms).toBeLessThan(15_000);
    }
    const { rssBytes } = await processFigures(pidOf(daemon));
    expect(rssBytes - before.rssBytes).toBeLessThan(60 * 2 ** 20);
    // Held up: the command has not written much more than was read.
    const [held] = (await box.execs()).filter(({ id }) => id === slow.id);
    expect(held).toMatchObject({ state: 'running' });
    for (let next = await reading.next(); next.done !== true; next = await reading.next())
      bytes += next.value.length;
    expect(bytes).toBe(total);
    expect(await slow.wait()).toMatchObject({ exitCode: 0, totalBytes: { stdout: total, stderr: 8 } });
  });
});

describe('[A13][A16] whoever goes away in the middle', () => {
  test('a client: what it waits for is killed at once, what it streams after a while, what is in the background not', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    await using box = await makeSandbox(daemon, { name: 'box' });
    const since = box.info.sequence;
    const background = await box.spawn(['sleep', '1000'], { background: true });
    const streamed = await box.spawn(['sh', '-c', 'echo on; sleep 1000']);
    await firstWords(streamed);
    streamed.disconnect();
    background.disconnect();
    const body = JSON.stringify({ argv: ['sh', '-c', 'sleep 1000'] });
    const socket = connect(join(home.stateDir, 'daemon.sock'));
    await once(socket, 'connect');
    socket.write(
      `POST /v1/sandboxes/box/execs?wait=true HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    const [head] = (await once(socket, 'data')) as [Buffer];
    expect(head.toString()).toContain('200 OK');
    socket.destroy();
    const ended: string[] = [];
    for await (const event of box.events({ since })) {
      if (event.type !== 'exec.ended') continue;
      ended.push(event.execId);
      if (ended.length === 2) break;
    }
    expect(ended[1]).toBe(streamed.id);
    const states = new Map((await box.execs()).map(({ id, state, killed }) => [id, { state, killed }]));
    expect(states.get(background.id)).toEqual({ state: 'running', killed: false });
    for (const id of ended) expect(states.get(id)).toEqual({ state: 'exited', killed: true });
    expect(await countOf(box, 'sleep')).toBe(1);
  });

  test('the container: its commands are lost and told so, the sandbox is stopped with the reason, and starts again', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    await using box = await makeSandbox(daemon);
    const since = box.info.sequence;
    const waited = box.sh('echo some; sleep 1000');
    waited.catch(() => {});
    await using streamed = await box.spawn(['sh', '-c', 'echo on; sleep 1000']);
    await firstWords(streamed);
    await killFromOutside(testEngine().connection, home.stateDir, box.info.containerId ?? '');
    await expect(waited).rejects.toMatchObject({
      code: 'exec_lost',
      message: expect.stringContaining('137'),
    });
    await expect(streamed.wait()).rejects.toMatchObject({ code: 'exec_lost' });
    for await (const event of box.events({ since })) {
      if (event.type === 'sandbox.state' && event.to === 'STOPPED') break;
    }
    expect(await box.refresh()).toMatchObject({ state: 'STOPPED', reason: expect.stringContaining('137') });
    await expect(box.exec(['true'])).rejects.toMatchObject({ code: 'sandbox_state' });
    await box.start();
    expect((await box.exec(['echo', 'back'])).stdout).toBe('back\n');
  });
});
