import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { capture, connectPorter, runIn, startPorter } from '../support/porter-child.ts';

const env = { PATH: '/usr/local/bin:/usr/bin:/bin' };

describe('the greeting', () => {
  it('tells version, build and pid', async () => {
    const started = startPorter();
    const { welcome } = await connectPorter(started);
    expect(welcome).toMatchObject({ major: 1, pid: started.child.pid, highestStream: 0 });
    expect(welcome.buildId).toMatch(/^[0-9a-f]{16}$/);
  });
});

describe('an exec', () => {
  it('carries output, error output and exit code', async () => {
    const porter = await connectPorter();
    const result = await runIn(porter, ['sh', '-c', 'echo out; echo err >&2; exit 7']);
    expect(result).toMatchObject({ stdout: 'out\n', stderr: 'err\n', exitCode: 7, outputIncomplete: false });
    expect(result.maxRssBytes).toBeGreaterThan(0);
  });

  it('tells a signal from an exit code', async () => {
    const porter = await connectPorter();
    const result = await runIn(porter, ['sh', '-c', 'kill -9 $$']);
    expect(result.signal).toBe(9);
    expect(result).not.toHaveProperty('exitCode');
    expect(await runIn(porter, ['sh', '-c', 'exit 137'])).toMatchObject({ exitCode: 137 });
  });

  it('[C5] gets exactly the environment it was given', async () => {
    const porter = await connectPorter();
    const result = await runIn(porter, ['/usr/bin/env'], { env: { ONLY: 'this', UMLAUT: 'ä' } });
    expect(result.stdout.trim().split('\n').sort()).toEqual(['ONLY=this', 'UMLAUT=ä']);
  });

  it('passes arguments as they are, with no shell between', async () => {
    const porter = await connectPorter();
    const argument = '$(id) `id` "quoted" *\n\'x\'';
    const result = await runIn(porter, ['printf', '%s', argument]);
    expect(result.stdout).toBe(argument);
  });

  it('starts in the directory it was told', async () => {
    const porter = await connectPorter();
    expect((await runIn(porter, ['pwd'], { cwd: '/usr' })).stdout).toBe('/usr\n');
  });

  it.each([
    ['a program that does not exist', ['no-such-program'] as const, 2],
    ['a file that may not be executed', ['/etc/passwd'] as const, 13],
    ['a path through a file', ['/etc/passwd/x'] as const, 20],
  ])('says why %s was not started', async (_name, argv, errno) => {
    const porter = await connectPorter();
    const { exec } = capture(porter, { argv, env, cwd: '/' });
    await expect(exec.started).rejects.toMatchObject({ code: 'exec_start_failed', details: { errno } });
    await expect(exec.result).rejects.toMatchObject({ code: 'exec_start_failed' });
    expect((await runIn(porter, ['echo', 'still here'])).stdout).toBe('still here\n');
  });

  it('says so when the working directory is not there', async () => {
    const porter = await connectPorter();
    const { exec } = capture(porter, { argv: ['true'], env, cwd: '/nowhere' });
    await expect(exec.started).rejects.toMatchObject({ code: 'exec_start_failed', details: { errno: 2 } });
  });

  it('reads end of file at once when it has no input', async () => {
    const porter = await connectPorter();
    expect(await runIn(porter, ['cat'])).toMatchObject({ stdout: '', exitCode: 0 });
  });

  it('takes 10 MB of binary input and gives it back unchanged', async () => {
    const porter = await connectPorter();
    const input = randomBytes(10 * 2 ** 20);
    const { exec, stdout } = capture(porter, { argv: ['cat'], env, cwd: '/', stdin: true });
    const hash = createHash('sha256');
    const read = async (): Promise<void> => {
      for await (const chunk of stdout) hash.update(chunk);
    };
    await Promise.all([read(), exec.write(input).then(() => exec.endStdin()), exec.result]);
    expect(hash.digest('hex')).toBe(createHash('sha256').update(input).digest('hex'));
  });

  it('carries pieces of every length, each with its checksum', async () => {
    const porter = await connectPorter();
    const { exec, stdout } = capture(porter, { argv: ['cat'], env, cwd: '/', stdin: true });
    const echo = stdout[Symbol.asyncIterator]();
    // Checksums are computed in steps of 64 and of 8 bytes, and the rest singly.
    const lengths = [...Array.from({ length: 200 }, (_, index) => index + 1), 4095, 4096, 4097, 32_767];
    for (const length of lengths) {
      const piece = randomBytes(length);
      await exec.write(piece);
      const parts: Buffer[] = [];
      for (let seen = 0; seen < length; ) {
        const { value } = (await echo.next()) as IteratorResult<Buffer, Buffer>;
        parts.push(value);
        seen += value.length;
      }
      expect(Buffer.concat(parts)).toEqual(piece);
    }
    exec.endStdin();
    expect(await echo.next()).toMatchObject({ done: true });
    expect((await exec.result).exitCode).toBe(0);
  });

  it('does not wait for input that its program never reads', async () => {
    const porter = await connectPorter();
    const result = await runIn(porter, ['true'], { input: Buffer.alloc(2 ** 20) });
    expect(result.exitCode).toBe(0);
  });

  it('can be signalled', async () => {
    const porter = await connectPorter();
    const { exec } = capture(porter, { argv: ['sleep', '100'], env, cwd: '/' });
    await exec.started;
    exec.signal(15);
    expect((await exec.result).signal).toBe(15);
  });

  it('ends when its main process ends, though a child of it still holds the output', async () => {
    const porter = await connectPorter();
    const result = await runIn(porter, ['sh', '-c', 'sleep 1000 & echo $!; exit 3']);
    expect(result).toMatchObject({ exitCode: 3, outputIncomplete: true, leftBehind: 1 });
    process.kill(Number(result.stdout), 'SIGKILL');
  });
});

describe('many execs', () => {
  it('run side by side, each with its own output and exit code', async () => {
    const porter = await connectPorter();
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        runIn(porter, ['sh', '-c', `echo ${index}; exit ${index % 50}`]),
      ),
    );
    for (const [index, result] of results.entries()) {
      expect(result).toMatchObject({ stdout: `${index}\n`, exitCode: index % 50 });
    }
  });

  it('are not held up by one whose output nobody reads', async () => {
    const porter = await connectPorter();
    const unread = capture(porter, { argv: ['head', '-c', '50000000', '/dev/zero'], env, cwd: '/' });
    await unread.exec.started;
    const bytes = (await runIn(porter, ['head', '-c', '20000000', '/dev/zero'])).stdout.length;
    expect(bytes).toBe(20_000_000);
    unread.stdout.discard();
    unread.stderr.discard();
    expect((await unread.exec.result).exitCode).toBe(0);
  });
});

describe('porter', () => {
  it('ends with its host when told to', async () => {
    const porter = startPorter(['--exit-with-host']);
    await connectPorter(porter);
    const ended = new Promise((resolve) => porter.child.once('exit', resolve));
    porter.child.stdin?.end();
    expect(await ended).toBe(0);
  });
});
