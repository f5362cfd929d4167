import { chown, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  boxForAll,
  cliLine,
  makeBox,
  newFolder,
  removeAfterwards,
  sally,
  startSally,
} from '../support/cli.ts';
import { testEngine } from '../support/engine.ts';
import { asRoot, when } from '../support/selection.ts';

const box = boxForAll();

describe('sally exec', () => {
  it('[R10] passes output, input and exit code through', async () => {
    const name = box();
    const result = await sally(['exec', name, 'sh', '-c', 'cat; echo err >&2; exit 5'], { input: 'in\n' });
    expect(result).toMatchObject({ code: 5, stdout: 'in\n', stderr: 'err\n' });
    expect((await sally(['exec', name, '--', 'echo', '-n', 'x'])).stdout).toBe('x');
    expect((await sally(['exec', '-e', 'A=1', '-w', '/tmp', name, 'sh', '-c', 'echo $A; pwd'])).stdout).toBe(
      '1\n/tmp\n',
    );
  });

  it.each([
    ['[R10] 127 for a program that is not there', ['no-such-program'], 127],
    ['[R10] 126 for a file that cannot be executed', ['/etc/passwd'], 126],
    ['[R10] 128 + n for a signal', ['sh', '-c', 'kill -USR1 $$'], 138],
  ])('ends with %s', async (_name, command, code) => {
    const name = box();
    expect((await sally(['exec', name, ...command])).code).toBe(code);
  });

  it('[R10] ends with 124 at the time limit and with 125 where there is no sandbox', async () => {
    const name = box();
    const late = await sally(['exec', '--timeout', '300ms', name, 'sleep', '100']);
    expect(late.code).toBe(124);
    expect(late.stderr).toContain('--timeout never');
    expect((await sally(['exec', 'no-such-box', 'true'])).code).toBe(125);
    expect((await sally(['exec', name])).code).toBe(2);
  });

  it('carries 10 MB of input and output through, byte by byte', async () => {
    const name = box();
    const input = Buffer.alloc(10_000_000, Buffer.from(Array.from({ length: 251 }, (_, index) => index)));
    const result = await sally(['exec', name, 'cat'], { input });
    expect(result.stdoutBytes.equals(input)).toBe(true);
  });

  it('gives a terminal where there is one', async () => {
    const name = box();
    const line = `stty rows 20 cols 70; ${cliLine()} exec -it ${name} sh -c 'tty; stty size'`;
    const result = await sally([], { command: ['script', '-qec', line, '/dev/null'] });
    expect(result.stdout.replace(/\r|\^@/g, '')).toContain('/dev/pts/0\n20 70\n');
  });

  it('detached prints the id, and wait, logs, attach and kill find the command by it', async () => {
    const name = box();
    const script = 'echo begun; trap "exit 9" USR1; while :; do sleep 0.05; done';
    const id = (await sally(['exec', '-d', name, 'sh', '-c', script])).stdout.trim();
    expect(id).toMatch(/^ex-/);
    const logs = startSally(['logs', '-f', name, id]);
    await logs.said('begun');
    expect((await sally(['logs', '--list', name])).stdout).toMatch(new RegExp(`${id} +running`));
    expect((await sally(['kill', '-s', 'USR1', name, id])).stdout).toBe(`${id}\n`);
    expect((await sally(['wait', name, id])).stdout).toBe('9\n');
    expect((await logs.result).code).toBe(0);
  });

  it('kills all that runs, and refuses a signal that is none', async () => {
    const name = box();
    const id = (await sally(['exec', '-d', name, 'sleep', '1000'])).stdout.trim();
    expect((await sally(['kill', '-s', 'NOSUCH', name])).code).toBe(2);
    expect((await sally(['kill', '--grace', '0', name])).stdout).toBe(`${id}\n`);
    expect((await sally(['wait', name, id])).stdout).toMatch(/^(143|137)\n$/);
    expect((await sally(['wait', 'no-such-box'])).code).toBe(1);
  });
});

describe('the sandbox of a folder', () => {
  it('[G1][G2] is made on demand, found again, and started when it was stopped', async () => {
    const cwd = await newFolder();
    await writeFile(join(cwd, 'hello'), 'from the host');
    const env = { SALLYPORT_IMAGE: testEngine().image };
    const first = await sally(['exec', '--', 'cat', 'hello'], { cwd, env });
    const name = /made sandbox (\S+) for this folder/.exec(first.stderr)?.[1] ?? '';
    removeAfterwards(name);
    expect(first).toMatchObject({ code: 0, stdout: 'from the host' });
    expect((await sally(['logs'], { cwd })).stdout).toBe('from the host');
    await sally(['stop', name]);
    const again = await sally(['exec', '--', 'echo', 'back'], { cwd, env });
    expect(again).toMatchObject({ code: 0, stdout: 'back\n', stderr: '' });
  });

  when(asRoot).it('refuses a folder of root, and names the ways out', async () => {
    const cwd = join(await newFolder(), 'of-root');
    await mkdir(cwd);
    await chown(cwd, 0, 0);
    const result = await sally(['exec', '--', 'true'], { cwd, env: { SALLYPORT_IMAGE: testEngine().image } });
    expect(result.code).toBe(2);
    expect(result.stderr).toContain('copy');
  });

  it('of a folder that has none is an error for logs', async () => {
    const result = await sally(['logs'], { cwd: await newFolder() });
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('there is no sandbox');
  });
});

describe('sally shell', () => {
  it('is a login shell that reads what is piped in', async () => {
    const name = box();
    const result = await sally(['shell', name], { input: 'echo "shell $0"; exit 3\n' });
    expect(result.code).toBe(3);
    expect(result.stdout).toMatch(/^shell (bash|sh)/);
    expect((await sally(['shell', 'no-such-box'])).code).toBe(125);
  });
});

describe('sally attach', () => {
  it('shows what comes from now on and leaves the command running', async () => {
    const name = await makeBox([
      '--',
      'sh',
      '-c',
      'i=0; while :; do i=$((i+1)); echo line $i; sleep 0.1; done',
    ]);
    const attached = startSally(['attach', name]);
    await attached.said('line');
    attached.child.kill('SIGINT');
    const result = await attached.result;
    expect(result.code).toBe(0);
    expect(result.stderr).toContain('it goes on');
    expect((await sally(['logs', '--list', name])).stdout).toContain('running');
  });

  it('has nothing to show where nothing runs', async () => {
    const name = box();
    const result = await sally(['attach', name]);
    expect(result.code).toBe(125);
    expect(result.stderr).toContain('runs no command');
  });
});

describe('sally logs', () => {
  it('shows one stream or both, and only the last lines', async () => {
    const name = box();
    await sally(['exec', name, 'sh', '-c', 'echo a; echo b >&2; echo c; echo d >&2']);
    expect((await sally(['logs', '--stdout', name])).stdout).toBe('a\nc\n');
    expect((await sally(['logs', '--stderr', '--tail', '1', name])).stdout).toBe('d\n');
    expect((await sally(['logs', name])).stdout.split('\n').sort()).toEqual(['', 'a', 'b', 'c', 'd']);
    expect((await sally(['logs', name, 'ex-nothing'])).code).toBe(1);
  });
});

describe('sally events', () => {
  it('[A15] lists what happened to a sandbox, in order and numbered, and follows what comes', async () => {
    const name = await makeBox();
    await sally(['exec', name, 'true']);
    const lines = (await sally(['events', name, '--json'])).stdout.trim().split('\n');
    const events = lines.map((line) => JSON.parse(line) as { type: string; sequence: number; to?: string });
    expect(events[0]).toMatchObject({ type: 'sandbox.state', to: 'PENDING' });
    expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(['exec.started', 'exec.ended']));
    const last = events.at(-1)?.sequence ?? 0;
    const following = startSally(['events', '-f', '--since', String(last)]);
    await sally(['stop', name]);
    await following.said('STOPPED');
    following.child.kill('SIGINT');
    expect((await following.result).code).toBe(130);
    expect((await sally(['events', 'no-such-box'])).code).toBe(1);
  });
});
