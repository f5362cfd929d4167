import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { PorterConnection } from '../../src/porter/connection.ts';
import type { ExecResult } from '../../src/porter/exec.ts';
import { collect, connectPorter, startPorter } from '../support/porter-child.ts';

const env = { PATH: '/usr/local/bin:/usr/bin:/bin' };

async function run(
  connection: PorterConnection,
  argv: readonly [string, ...string[]],
  more: { readonly env?: Record<string, string>; readonly cwd?: string; readonly input?: Buffer } = {},
): Promise<ExecResult & { readonly stdout: string; readonly stderr: string }> {
  const exec = connection.exec({
    argv,
    env: more.env ?? env,
    cwd: more.cwd ?? '/',
    stdin: more.input !== undefined,
  });
  const feed = async (): Promise<void> => {
    if (more.input === undefined) return;
    await exec.write(more.input);
    exec.endStdin();
  };
  const [result, stdout, stderr] = await Promise.all([
    exec.result,
    collect(exec.stdout),
    collect(exec.stderr),
    feed(),
  ]);
  return { ...result, stdout, stderr };
}

describe('the greeting', () => {
  it('tells version, build and pid', async () => {
    const porter = startPorter();
    const { welcome } = await connectPorter(porter);
    expect(welcome).toMatchObject({ major: 1, pid: porter.child.pid });
    expect(welcome.buildId).toMatch(/^[0-9a-f]{16}$/);
  });
});

describe('an exec', () => {
  it('carries output, error output and exit code', async () => {
    const { connection } = await connectPorter();
    const result = await run(connection, ['sh', '-c', 'echo out; echo err >&2; exit 7']);
    expect(result).toMatchObject({ stdout: 'out\n', stderr: 'err\n', exitCode: 7, outputIncomplete: false });
    expect(result.maxRssBytes).toBeGreaterThan(0);
  });

  it('tells a signal from an exit code', async () => {
    const { connection } = await connectPorter();
    const result = await run(connection, ['sh', '-c', 'kill -9 $$']);
    expect(result.signal).toBe(9);
    expect(result).not.toHaveProperty('exitCode');
    expect(await run(connection, ['sh', '-c', 'exit 137'])).toMatchObject({ exitCode: 137 });
  });

  it('[C5] gets exactly the environment it was given', async () => {
    const { connection } = await connectPorter();
    const result = await run(connection, ['/usr/bin/env'], { env: { ONLY: 'this', UMLAUT: 'ä' } });
    expect(result.stdout.trim().split('\n').sort()).toEqual(['ONLY=this', 'UMLAUT=ä']);
  });

  it('passes arguments as they are, with no shell between', async () => {
    const { connection } = await connectPorter();
    const argument = '$(id) `id` "quoted" *\n\'x\'';
    const result = await run(connection, ['printf', '%s', argument]);
    expect(result.stdout).toBe(argument);
  });

  it('starts in the directory it was told', async () => {
    const { connection } = await connectPorter();
    expect((await run(connection, ['pwd'], { cwd: '/usr' })).stdout).toBe('/usr\n');
  });

  it.each([
    ['a program that does not exist', ['no-such-program'] as const, 2],
    ['a file that may not be executed', ['/etc/passwd'] as const, 13],
    ['a path through a file', ['/etc/passwd/x'] as const, 20],
  ])('says why %s was not started', async (_name, argv, errno) => {
    const { connection } = await connectPorter();
    const exec = connection.exec({ argv, env, cwd: '/', stdin: false });
    await expect(exec.started).rejects.toMatchObject({ code: 'exec_start_failed', details: { errno } });
    await expect(exec.result).rejects.toMatchObject({ code: 'exec_start_failed' });
    expect((await run(connection, ['echo', 'still here'])).stdout).toBe('still here\n');
  });

  it('says so when the working directory is not there', async () => {
    const { connection } = await connectPorter();
    const exec = connection.exec({ argv: ['true'], env, cwd: '/nowhere', stdin: false });
    await expect(exec.started).rejects.toMatchObject({ code: 'exec_start_failed', details: { errno: 2 } });
  });

  it('reads end of file at once when it has no input', async () => {
    const { connection } = await connectPorter();
    expect(await run(connection, ['cat'])).toMatchObject({ stdout: '', exitCode: 0 });
  });

  it('takes 10 MB of binary input and gives it back unchanged', async () => {
    const { connection } = await connectPorter();
    const input = randomBytes(10 * 2 ** 20);
    const exec = connection.exec({ argv: ['cat'], env, cwd: '/', stdin: true });
    const hash = createHash('sha256');
    const read = async (): Promise<void> => {
      for await (const chunk of exec.stdout) hash.update(chunk);
    };
    await Promise.all([read(), exec.write(input).then(() => exec.endStdin()), exec.result]);
    expect(hash.digest('hex')).toBe(createHash('sha256').update(input).digest('hex'));
  });

  it('does not wait for input that its program never reads', async () => {
    const { connection } = await connectPorter();
    const result = await run(connection, ['true'], { input: Buffer.alloc(2 ** 20) });
    expect(result.exitCode).toBe(0);
  });

  it('can be signalled', async () => {
    const { connection } = await connectPorter();
    const exec = connection.exec({ argv: ['sleep', '100'], env, cwd: '/', stdin: false });
    await exec.started;
    exec.signal(15);
    expect((await exec.result).signal).toBe(15);
  });

  it('ends when its main process ends, though a child of it still holds the output', async () => {
    const { connection } = await connectPorter();
    const result = await run(connection, ['sh', '-c', 'sleep 1000 & echo $!; exit 3']);
    expect(result).toMatchObject({ exitCode: 3, outputIncomplete: true });
    process.kill(Number(result.stdout), 'SIGKILL');
  });
});

describe('many execs', () => {
  it('run side by side, each with its own output and exit code', async () => {
    const { connection } = await connectPorter();
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        run(connection, ['sh', '-c', `echo ${index}; exit ${index % 50}`]),
      ),
    );
    for (const [index, result] of results.entries()) {
      expect(result).toMatchObject({ stdout: `${index}\n`, exitCode: index % 50 });
    }
  });

  it('are not held up by one whose output nobody reads', async () => {
    const { connection } = await connectPorter();
    const unread = connection.exec({
      argv: ['sh', '-c', 'head -c 50000000 /dev/zero'],
      env,
      cwd: '/',
      stdin: false,
    });
    await unread.started;
    const bytes = (await run(connection, ['head', '-c', '20000000', '/dev/zero'])).stdout.length;
    expect(bytes).toBe(20_000_000);
    unread.stdout.discard();
    unread.stderr.discard();
    expect((await unread.result).exitCode).toBe(0);
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

  it('refuses a host that speaks another protocol, and says which it speaks', async () => {
    const { stream } = startPorter();
    const { encodeFrame, FrameDecoder, frameType } = await import('../../src/porter/frame.ts');
    const { PayloadReader, PayloadWriter } = await import('../../src/porter/payload.ts');
    const payload = new PayloadWriter().u16(99).u16(0).u64(0n).u32(1).u32(1).end();
    stream.write(encodeFrame({ type: frameType.hello, epoch: 1, stream: 0, payload }));
    const [chunk] = await stream.take(1).toArray();
    const [frame] = [...new FrameDecoder().push(chunk)];
    expect(frame?.type).toBe(frameType.refused);
    expect(new PayloadReader(frame?.payload ?? Buffer.alloc(0)).u16()).toBe(1);
  });
});
