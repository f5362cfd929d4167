import { describe, expect, it } from 'vitest';
import { waitUntilRemoved } from '../../src/engines/docker/containers/remove.ts';
import { ownerId } from '../../src/lib/owner.ts';
import { boxEngineOf } from '../support/box-engine.ts';
import { type CliResult, cliLine, newFolder, sally, startSally } from '../support/cli.ts';
import { testEngine } from '../support/engine.ts';
import { imageFlags, onDocker } from '../support/engine-under-test.ts';
import { dockerAlone, when, withLimits } from '../support/selection.ts';
import { stateFolder } from '../support/state-folder.ts';

const owner = (): string => ownerId(process.getuid?.() ?? -1, stateFolder());

const box = (...command: readonly string[]): string[] => ['run', ...imageFlags(), '--', ...command];

const containers = async () =>
  await (await boxEngineOf(testEngine().connection, stateFolder())).list(owner());

/** Resolves when the engine has removed all boxes that are there now, whoever asked it to. */
async function allRemoved(): Promise<void> {
  const { connection } = testEngine();
  const found = (await containers()).map(({ id }) => id);
  if (onDocker) await Promise.all(found.map((id) => waitUntilRemoved(connection, id)));
  // A box of bubblewrap is a folder: nobody tells of its end.
  else while ((await containers()).some(({ id }) => found.includes(id))) await new Promise(setImmediate);
}

async function boxes(): Promise<number> {
  return (await containers()).length;
}

describe('sally run', () => {
  it('[R10] passes output and exit code of the command through', async () => {
    const result = await sally(box('sh', '-c', 'echo out; echo err >&2; exit 42'));
    expect(result).toMatchObject({ code: 42, stdout: 'out\n', stderr: 'err\n' });
  });

  it.each([
    ['[R10] 127 for a program that is not there', ['no-such-program'], 127],
    ['[R10] 126 for a file that cannot be executed', ['/etc/passwd'], 126],
    ['[R10] 128 + n for a signal', ['sh', '-c', 'kill -9 $$'], 137],
  ])('ends with %s', async (_name, command, code) => {
    expect((await sally(box(...command))).code).toBe(code);
  });

  it('gives the command its standard input and carries every byte both ways', async () => {
    const input = Buffer.from(Array.from({ length: 4096 }, (_, index) => index % 256));
    const result = await sally(box('cat'), { input });
    expect(result.stdoutBytes).toEqual(input);
  });

  it('[C5] shows the command nothing of this environment', async () => {
    const result = await sally(box('env'), { env: { SECRET_TOKEN: 'do-not-leak' } });
    expect(result.stdout).not.toContain('do-not-leak');
    const names = result.stdout
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0])
      .sort();
    expect(names).toEqual(['HOME', 'HOST_GID', 'HOST_UID', 'LANG', 'PATH', 'USER']);
  });

  it('passes what --env names, and refuses to take a value from this shell', async () => {
    const args = ['run', ...imageFlags(), '-e', 'A=1', '-e', 'B=x=y', '--', 'sh', '-c', 'echo $A $B'];
    expect((await sally(args)).stdout).toBe('1 x=y\n');
    const refused = await sally(['run', '-e', 'HOME', '--', 'true']);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toMatch(/^sally: --env HOME: write NAME=value/);
  });

  when(withLimits).it(
    '[A11][O3] is sealed: no capability, no new privileges, seccomp, an own user, no network, porter as PID 1',
    async () => {
      const script = `
      id -u; id -g
      grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status
      tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '
      cat /proc/1/comm
      touch /.sallyport/planted 2>&1
    `;
      const { stdout } = await sally(box('sh', '-c', script));
      expect(stdout.split('\n').map((line) => line.replace(/\s+/g, ' '))).toEqual([
        expect.stringMatching(/^64[012]\d\d$/),
        expect.stringMatching(/^64[012]\d\d$/),
        ...['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map((name) => `${name}: 0000000000000000`),
        'NoNewPrivs: 1',
        'Seccomp: 2',
        'lo',
        'porter',
        expect.stringContaining('Read-only file system'),
        '',
      ]);
    },
  );

  when(withLimits).it('[G4] holds to the limits it was given', async () => {
    const script = `
      cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null
      cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null
    `;
    const args = ['run', ...imageFlags(), '--memory', '256m', '--pids', '64', '--', 'sh', '-c', script];
    expect((await sally(args)).stdout).toBe(`${256 * 2 ** 20}\n64\n`);
  });

  when(withLimits).it('[G4] takes a limit of more CPUs than the machine has', async () => {
    const script = `cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || cut -d' ' -f1 /sys/fs/cgroup/cpu.max`;
    const args = ['run', ...imageFlags(), '--cpus', '1000', '--', 'sh', '-c', script];
    expect((await sally(args)).stdout).toBe('100000000\n');
  });

  when(withLimits).it(
    '[G4] takes memory and processor time from SALLYPORT_MEM and SALLYPORT_CPU_QUOTA, and a flag wins',
    async () => {
      const script = `
      cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null
      cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || cut -d' ' -f1 /sys/fs/cgroup/cpu.max
    `;
      const run = async (...flags: readonly string[]): Promise<string> => {
        const args = ['run', ...imageFlags(), ...flags, '--', 'sh', '-c', script];
        const env = { SALLYPORT_MEM: '300m', SALLYPORT_CPU_QUOTA: '50000' };
        return (await sally(args, { env })).stdout;
      };
      expect(await run()).toBe(`${300 * 2 ** 20}\n50000\n`);
      expect(await run('--memory', '200m', '--cpus', '1.5')).toBe(`${200 * 2 ** 20}\n150000\n`);
    },
  );

  when(withLimits).it('[G4] has the kernel kill a command that goes beyond its memory', async () => {
    const python = 'x = []\nwhile True: x.append(bytearray(10**7))';
    const args = ['run', ...imageFlags(), '--memory', '128m', '--', 'python3', '-c', python];
    const result = await sally(args);
    expect(result.code).toBe(137);
  });

  it('carries 50 MB of output whole', async () => {
    const args = box('sh', '-c', 'head -c 50000000 /dev/zero | tr "\\0" x');
    const { child, result } = startSally(args);
    let bytes = 0;
    child.stdout?.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    await result;
    expect(bytes).toBe(50_000_000);
  });

  it('leaves nothing behind', async () => {
    await sally(box('true'));
    await allRemoved();
    expect((await sally(['ls', '-q'])).stdout).toBe('');
  });

  it('hands Ctrl-C and TERM on to the command, which has its own end for them', async () => {
    for (const [signal, code] of [
      ['SIGINT', 7],
      ['SIGTERM', 8],
    ] as const) {
      const script =
        'trap "echo bye; exit 7" INT; trap "echo bye; exit 8" TERM; echo ready; while :; do sleep 0.1; done';
      const running = startSally(box('sh', '-c', script));
      await running.said('ready');
      running.child.kill(signal);
      expect(await running.result).toMatchObject({ code, stdout: 'ready\nbye\n' });
    }
  });

  it('kills a command that ignores Ctrl-C at the second one, and removes the box', async () => {
    const running = startSally(
      box('sh', '-c', 'trap "echo no" INT; echo ready; while :; do sleep 0.1; done'),
    );
    await running.said('ready');
    running.child.kill('SIGINT');
    await running.said('no');
    running.child.kill('SIGINT');
    expect(await running.result).toMatchObject({ code: 130 });
    await allRemoved();
    expect(await boxes()).toBe(0);
  });

  it('ends the command when nobody reads its output any more', async () => {
    const command = ['sh', '-c', `${cliLine()} run ${imageFlags().join(' ')} -- yes | head -n 1`];
    expect(await sally([], { command })).toMatchObject({ code: 0, stdout: 'y\n' });
    await allRemoved();
    expect(await boxes()).toBe(0);
  });

  it('leaves nothing behind when it is killed with no chance to clean up', async () => {
    const running = startSally(box('sh', '-c', 'echo ready; sleep 1000'));
    await running.said('ready');
    running.child.kill('SIGKILL');
    await allRemoved();
    expect(await boxes()).toBe(0);
  });

  it('runs several at the same time', async () => {
    const results = await Promise.all(['a', 'b', 'c'].map((name) => sally(box('echo', name))));
    expect(results.map(({ stdout }) => stdout)).toEqual(['a\n', 'b\n', 'c\n']);
  });

  when(dockerAlone).it('names the image that is missing and what to do', async () => {
    const result = await sally(['run', '--image', 'no-such-image:1', '--', 'true']);
    expect(result.code).toBe(125);
    expect(result.stderr).toContain('no-such-image');
    expect(result.stderr).toContain('sally image bootstrap');
  });
});

when(withLimits).describe('the strict profile', () => {
  const strict = (...command: readonly string[]): string[] => [
    'run',
    '--profile',
    'strict',
    ...imageFlags(),
    '--',
    ...command,
  ];

  it('[C2] holds, read back from inside, row by row', async () => {
    const script = `
      id -u
      tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '
      cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null
      cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null
      cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu.max 2>/dev/null
      touch /planted 2>&1
      grep -c ' /tmp tmpfs .*noexec.*size=65536k' /proc/mounts
      grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\t' ' '
    `;
    const { stdout } = await sally(strict('sh', '-c', script));
    expect(stdout.trimEnd().split('\n')).toEqual([
      '65534',
      'lo',
      String(256 * 2 ** 20),
      '100',
      expect.stringMatching(/^50000( 100000)?$/),
      expect.stringContaining('Read-only file system'),
      '1',
      'CapEff: 0000000000000000',
      'CapBnd: 0000000000000000',
      'NoNewPrivs: 1',
      'Seccomp: 2',
    ]);
  });

  it('[C2] refuses a limit above its own before anything is made', async () => {
    const result = await sally(['run', '--profile', 'strict', '-m', '1g', '--', 'true']);
    expect(result).toMatchObject({ code: 2, stdout: '' });
    expect(result.stderr).toContain('more than the strict profile allows (256 MiB)');
  });
});

describe('time and terminals', () => {
  it('[G5][R10] ends the command and all that it started at the deadline, with 124', async () => {
    const script = 'sleep 1000 & setsid sleep 1000 & echo ready; sleep 1000';
    const args = ['run', '--timeout', '500ms', ...imageFlags(), '--', 'sh', '-c', script];
    const result = await sally(args);
    expect(result).toMatchObject({ code: 124, stdout: 'ready\n' });
    expect(result.stderr).toContain('ran out of time');
  });

  it('gives the command a terminal of the size of this one', async () => {
    const command = [
      'script',
      '-qec',
      `stty rows 33 cols 101; ${cliLine()} run -it ${imageFlags().join(' ')} -- sh -c 'tty; stty size'`,
      '/dev/null',
    ];
    const result = await sally([], { command });
    // `script` itself writes a NUL to the terminal when its own input ends.
    expect(result.stdout.replace(/\r|\^@/g, '')).toContain('/dev/pts/0\n33 101\n');
  });

  it('refuses a terminal where there is none', async () => {
    expect(await sally(['run', '-t', '--', 'true'])).toMatchObject({ code: 2 });
  });
});

describe('sally explain', () => {
  when(dockerAlone).it('[O2] prints the request and the docker run line, and needs no engine', async () => {
    const env = { DOCKER_HOST: 'unix:///nowhere' };
    const result = await sally(['explain', '--profile', 'strict', '--json', '--', 'id'], { env });
    expect(result.code).toBe(0);
    const { request, docker_run, exec } = JSON.parse(result.stdout);
    expect(request).toMatchObject({
      User: '65534:65534',
      HostConfig: { NetworkMode: 'none', ReadonlyRootfs: true },
    });
    expect(docker_run).toMatch(
      /^docker run .*--cap-drop ALL .*--network none|^docker run .*--network none .*--cap-drop ALL/,
    );
    expect(exec.argv).toEqual(['id']);
  });
});

describe('bad input', () => {
  it('[R11] refuses a runtime that the engine does not have, and names those it has', async () => {
    const result = await sally(['run', '--runtime', 'no-such-runtime', '--', 'true']);
    expect(result.code).toBe(125);
    expect(result.stderr).toContain('has no runtime "no-such-runtime"');
    expect(result.stderr).toContain(onDocker ? 'runc' : 'bwrap');
  });

  const threeLines = ({ stderr }: CliResult): void => {
    const lines = stderr.trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(3);
    for (const line of lines) expect(line).toMatch(/^(sally: |\(add --help)/);
  };

  it.each([
    [['run'], /missing required argument/],
    [['run', '--memory', 'lots', '--', 'true'], /Write a size like 512m/],
    [['run', '--cpus', '-1', '--', 'true'], /Write a number like/],
    [['run', '--pids', '0', '--', 'true'], /whole number/],
    [['run', '--timeout', '30', '--', 'true'], /duration like/],
    [['run', '--profile', 'loose', '--', 'true'], /standard, strict/],
    [['run', '--nosuch', '--', 'true'], /unknown option/],
    [['frobnicate'], /unknown command/],
  ])('[R10] %j is a usage error with exit code 2', async (args, message) => {
    const result = await sally(args);
    expect(result.code).toBe(2);
    expect(result.stderr).toMatch(message);
    threeLines(result);
  });

  when(dockerAlone).it.each([
    ['an address that is none', 'nonsense', 'engine address'],
    ['a socket that is not there', 'unix:///nowhere/docker.sock', 'there is no socket'],
    ['a port that nobody listens on', 'tcp://127.0.0.1:1', 'connection refused'],
  ])('says what is wrong with DOCKER_HOST: %s', async (_name, dockerHost, message) => {
    // A daemon that runs already has its engine; this one has to look for it.
    const SALLYPORT_STATE_DIR = await newFolder('own');
    const env = { DOCKER_HOST: dockerHost, SALLYPORT_STATE_DIR };
    const result = await sally(['run', '--', 'true'], { env });
    expect(result.code).toBe(125);
    expect(result.stderr).toContain(message);
    threeLines(result);
  });

  when(dockerAlone).it(
    'does not use a daemon that has another engine than the environment names',
    async () => {
      await sally(['daemon', 'start']);
      const result = await sally(['ls'], { env: { DOCKER_HOST: 'unix:///nowhere/docker.sock' } });
      expect(result.code).toBe(1);
      expect(result.stderr).toContain('unix:///nowhere/docker.sock');
    },
  );

  it('says that an agent is an agent', async () => {
    const result = await sally(['run', 'claude']);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain('sally agent claude');
  });
});
