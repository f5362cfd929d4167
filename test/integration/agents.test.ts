/** `sally agent` with an agent of the user's own: which sandbox it gets, what it is told, how it ends, and what is refused. */

import { execFileSync } from 'node:child_process';
import { chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ownerId } from '../../src/lib/owner.ts';
import type { NetView, SandboxView } from '../../src/protocol/views.ts';
import { DaemonClient } from '../../src/sdk/client.ts';
import { cliLine, newFolder, sally, startSally } from '../support/cli.ts';
import { testEngine } from '../support/engine.ts';
import { removeOwned } from '../support/owned-objects.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { when } from '../support/selection.ts';

let stateDir: string;
let env: Record<string, string>;

const definitions = (image: string): Readonly<Record<string, string>> => ({
  // Says what it is given.
  tiny: `
command: [sh, -c, 'echo "args:$*"; echo "who:$GIT_AUTHOR_NAME <$GIT_COMMITTER_EMAIL>"; echo "at:$PWD"; cat ~/.tiny/conf; ls ~/.tiny', tiny]
headless: [-p, '{prompt}']
model: [-m, '{model}']
skip_permissions: [--unasked]
image: ${image}
envs: { TINY: 'a "word"' }
files:
  - { path: ~/.tiny/conf, content: "conf:{TINY}|{WORKDIR}\\n", needs: TINY }
  - { path: ~/.tiny/other, content: "of a service whose token is not there", needs: OTHER_BASE_URL }
`,
  // Does what its arguments say.
  shell: `
command: [sh, -c]
image: ${image}
`,
  needy: `
command: ['true']
image: ${image}
credentials: [{ one_of: [needed, openai] }]
`,
  absent: `
command: [there-is-no-such-agent]
image: ${image}
`,
});

beforeAll(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'sallyport-agents-'));
  env = {
    SALLYPORT_STATE_DIR: stateDir,
    XDG_CONFIG_HOME: join(stateDir, 'config'),
    GIT_AUTHOR_NAME: 'A Person',
    GIT_AUTHOR_EMAIL: 'person@example.com',
  };
  for (const [name, text] of Object.entries(definitions(inject('engine').image))) {
    const folder = join(stateDir, 'config/sallyport/agents', name);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'agent.yaml'), text);
  }
});
afterAll(async () => {
  await sally(['daemon', 'stop'], { env });
  await removeOwned(testEngine().connection, ownerId(process.getuid?.() ?? -1, stateDir));
  await rm(stateDir, { recursive: true, force: true });
});

const agent = (args: readonly string[], cwd: string) => sally(['agent', ...args], { env, cwd });

async function boxes(folder: string): Promise<readonly SandboxView[]> {
  const { stdout } = await sally(['agent', 'ls', '--json'], { env });
  const { sandboxes } = JSON.parse(stdout) as { sandboxes: SandboxView[] };
  return sandboxes.filter(({ workspace }) => workspace?.path === folder);
}

/** With one commit, and owned by whoever the sandbox runs as. */
async function newRepository(branch: string): Promise<string> {
  const folder = await newFolder();
  const git = (...args: readonly string[]): void =>
    void execFileSync('git', ['-C', folder, '-c', 'user.name=t', '-c', 'user.email=t@t.test', ...args], {
      stdio: 'ignore',
      env: { PATH: process.env['PATH'], HOME: stateDir, GIT_CONFIG_COUNT: '1', ...safeDirectory },
    });
  git('init', '-q', '-b', branch);
  git('commit', '-q', '--allow-empty', '-m', 'first');
  if (process.getuid?.() === 0) execFileSync('chown', ['-R', '1000:1000', folder]);
  return folder;
}

const safeDirectory = { GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' };

async function setHead(folder: string, text: string): Promise<void> {
  await writeFile(join(folder, '.git/HEAD'), `${text}\n`);
  if (process.getuid?.() === 0) await chown(join(folder, '.git/HEAD'), 1000, 1000);
}

describe('sally agent', () => {
  it('[N5] says at its end what appeared in the folder that this machine may execute', async () => {
    const folder = await newRepository('main');
    expect((await agent(['shell', '--', 'true'], folder)).stderr).not.toContain('WARNING');
    const { code, stderr } = await agent(['shell', '--', 'echo x > .npmrc; exit 4'], folder);
    expect([code, stderr]).toEqual([4, expect.stringContaining('.npmrc (name, new)')]);
  });

  it('[R4] runs in the sandbox of the folder and its branch, and finds it again', async () => {
    const folder = await newRepository('feature/one');
    const first = await agent(['tiny', '-p', 'do it', '--model', 'big', '--', '--more', 'a b'], folder);
    expect([first.code, first.stderr]).toEqual([0, expect.stringContaining('no files changed')]);
    expect(first.stdout.split('\n')).toEqual([
      'args:-p do it --unasked -m big --more a b',
      'who:A Person <person@example.com>',
      `at:${folder}`,
      `conf:a \\"word\\"|${folder}`,
      'conf',
      '',
    ]);
    const again = await agent(['tiny', '--ask'], folder);
    expect([again.code, again.stdout.split('\n')[0]]).toEqual([0, 'args:']);
    expect(await boxes(folder)).toHaveLength(1);

    // A branch that would have the same name, a commit, and the sandbox of the first once more.
    await setHead(folder, 'ref: refs/heads/feature-one');
    expect((await agent(['tiny'], folder)).code).toBe(0);
    await setHead(folder, '1'.repeat(40));
    expect((await agent(['tiny'], folder)).code).toBe(0);
    const all = await boxes(folder);
    expect(all.map(({ labels }) => labels['sallyport.branch']).sort()).toEqual([
      '(detached)',
      'feature-one',
      'feature/one',
    ]);
    expect(new Set(all.map(({ name }) => name)).size).toBe(3);
    for (const { name } of all) expect(name).toMatch(/^sallyport-tiny-([a-z0-9-]{1,40}-)?[0-9a-f]{8}$/);
    const listed = await sally(['agent', 'ls'], { env });
    expect(listed.stdout).toMatch(/tiny +feature\/one +ready/);
    const logs = await agent(['logs', 'tiny'], folder);
    expect([logs.code, logs.stdout.split('\n')[0]]).toEqual([0, 'args:--unasked']);
    expect((await agent(['rm', 'tiny'], folder)).code).toBe(0);
    expect(await boxes(folder)).toHaveLength(2);
  });

  it('[R4] refuses a sandbox that differs, names the field, and makes it anew when told to', async () => {
    const folder = await newFolder();
    expect((await agent(['shell', '--', 'touch /tmp/was-here'], folder)).code).toBe(0);
    const other = await agent(['shell', '--memory', '300m', '--', 'true'], folder);
    expect([other.code, other.stderr]).toEqual([
      125,
      expect.stringMatching(/differs in limits\n.*--recreate.*--name/),
    ]);
    const anew = await agent(
      ['shell', '--memory', '300m', '--recreate', '--', 'test ! -e /tmp/was-here'],
      folder,
    );
    expect([anew.code, anew.stderr]).toEqual([0, expect.any(String)]);
    expect(await boxes(folder)).toHaveLength(1);
  });

  it('[R4] changes rules, labels, ports and times of a sandbox that runs, and keeps what a person said', async () => {
    const folder = await newFolder();
    const flags = ['--allow', 'first.test', '--publish', '3000', '--idle-ttl', '1h'];
    expect((await agent(['shell', ...flags, '--', 'touch /tmp/was-here'], folder)).code).toBe(0);
    const [before] = await boxes(folder);
    const box = before?.name ?? '';
    expect([before?.idle_ttl_ms, before?.ports.map((port) => port.box)]).toEqual([3_600_000, [3000]]);
    const said = await sally(['net', 'deny', box, 'person.test'], { env });
    expect([said.code, said.stderr]).toEqual([0, expect.any(String)]);
    const other = ['--allow', 'second.test', '--label', 'my=own', '--publish', '4000', '--idle-ttl', 'never'];
    const again = await agent(['shell', ...other, '--', 'test -e /tmp/was-here'], folder);
    expect([again.code, again.stderr]).toEqual([0, expect.any(String)]);
    const [after] = await boxes(folder);
    expect([after?.id, after?.idle_ttl_ms, after?.labels['my']]).toEqual([before?.id, undefined, 'own']);
    expect(after?.ports.map((port) => [port.box, port.open])).toEqual([[4000, true]]);
    const net = JSON.parse((await sally(['net', 'ls', box, '--json'], { env })).stdout) as NetView;
    expect([net.allow, net.deny]).toEqual([['second.test'], ['person.test']]);
  });

  it('[R10] passes the exit code on, and says what was changed and what was denied', async () => {
    const folder = await newFolder();
    const ask = [
      'import socket',
      's = socket.create_connection(("127.0.0.1", 3128))',
      's.sendall(b"CONNECT denied.test:80 HTTP/1.1\\r\\nhost: denied.test:80\\r\\n\\r\\n")',
      's.recv(99)',
    ].join('; ');
    const script = `echo new >one; echo new >two; python3 -c '${ask}' && exit 7`;
    const live = await agent(['shell', '--', script], folder);
    expect([live.code, live.stderr]).toEqual([
      7,
      expect.stringMatching(
        /1 host denied:\n.*denied\.test:80 ×1 → sally net allow [\s\S]*2 files changed in /,
      ),
    ]);
    const copy = await agent(
      ['shell', '--name', `copy-${process.pid}`, '--workspace-mode', 'copy', '--', 'echo newer >one; rm two'],
      folder,
    );
    expect([copy.code, copy.stderr]).toEqual([
      0,
      expect.stringContaining(
        `2 files changed → sally diff copy-${process.pid} · sally apply copy-${process.pid}`,
      ),
    ]);
    expect((await agent(['rm', '-f', `copy-${process.pid}`], folder)).code).toBe(0);
  });

  it('[R8] [R9] refuses before anything is made: no token, no agent, a folder’s own definition, a dead upstream', async () => {
    const folder = await newFolder();
    await mkdir(join(folder, 'agents/evil'), { recursive: true });
    await writeFile(join(folder, 'agents/evil/agent.yaml'), 'command: [id]\n');
    for (const [args, code, words] of [
      [['needy'], 125, /needs a token[\s\S]*sally secret set needed/],
      [['nobody'], 125, /there is no agent "nobody"[\s\S]*claude, codex, /],
      [['evil'], 125, /is not read/],
      [['shell', '--branch', 'x', '--', 'true'], 125, /no git repository/],
      [['shell', '--worktree', '--', 'true'], 2, /--worktree needs a branch/],
      [['shell', '-p', 'x'], 2, /-p: the agent shell has no arguments for it/],
      [['shell', '--no-such-flag'], 2, /unknown option/],
    ] as const) {
      const refused = await agent(args, folder);
      expect([args.join(' '), refused.code, refused.stderr]).toEqual([
        args.join(' '),
        code,
        expect.stringMatching(words),
      ]);
    }
    expect(await boxes(folder)).toEqual([]);
    const expired = ['--host', 'api.test', '--header', 'authorization: Bearer {}', '--expires', '2020-01-01'];
    await sally(['secret', 'set', 'needed', ...expired], { env, input: 'a-token-of-the-test' });
    const late = await agent(['needy'], folder);
    expect([late.code, late.stderr]).toEqual([
      125,
      expect.stringMatching(/needed is expired[\s\S]*set needed/),
    ]);
    await sally(['secret', 'rm', 'needed'], { env });
    expect(await boxes(folder)).toEqual([]);
    const dead = await agent(['shell', '--upstream', 'http://127.0.0.1:1', '--', 'echo ran'], folder);
    expect([dead.code, dead.stdout, dead.stderr]).toEqual([
      125,
      '',
      expect.stringMatching(/not ready for its agent:\n {2}reach the upstream/),
    ]);
  });

  it('[R10] ends with 127 where the image has no such agent, and says where it should be', async () => {
    const absent = await agent(['absent'], await newFolder());
    expect([absent.code, absent.stderr]).toEqual([
      127,
      expect.stringContaining('there-is-no-such-agent is not in the image'),
    ]);
  });

  it('[R10] is told of the first Ctrl-C, and killed by the second', async () => {
    const folder = await newFolder();
    const running = startSally(
      ['agent', 'shell', '--', 'trap "echo first" INT; echo begun; while :; do sleep 0.05; done'],
      { env, cwd: folder },
    );
    await running.said('begun');
    running.child.kill('SIGINT');
    await running.said('first');
    running.child.kill('SIGINT');
    expect((await running.result).code).toBe(130);
    expect((await boxes(folder)).map(({ state, running_execs: left }) => [state, left])).toEqual([
      ['READY', 0],
    ]);
  });

  it('goes on when the daemon is killed under it', async () => {
    const folder = await newFolder();
    const running = startSally(
      ['agent', 'shell', '--', 'echo begun; until [ -e go ]; do sleep 0.05; done; echo over; exit 5'],
      { env, cwd: folder },
    );
    await running.said('begun');
    const client = new DaemonClient({ stateDir, startDaemon: false, anyEngine: true });
    const { pid } = await client.json<{ pid: number }>('GET', '/v1/health');
    client.close();
    process.kill(pid, 'SIGKILL');
    await writeFile(join(folder, 'go'), '');
    const { code, stdout } = await running.result;
    expect([code, stdout]).toEqual([5, 'begun\nover\n']);
  });

  when(requirement('script', commandExists('script'))).it(
    'has the terminal of its user, and is told when that is resized',
    async () => {
      const folder = await newFolder();
      // `stty` sets rows and columns one after the other, and each is a resize of its own.
      const script =
        'told() { test "$(stty size)" = "31 91" && echo told && exit 4; }; trap told WINCH; test -t 1 && echo begun; while :; do sleep 0.05; done';
      const resize = '(until [ -e now ]; do sleep 0.05; done; stty rows 31 cols 91 </dev/tty) &';
      const line = `stty rows 30 cols 90; ${resize} ${cliLine()} agent shell -- '${script}'`;
      const running = startSally(['-qec', line, '/dev/null'], {
        env,
        cwd: folder,
        command: ['script'],
        openInput: true,
      });
      await running.said('begun');
      await writeFile(join(folder, 'now'), '');
      const { code, stdout } = await running.result;
      expect([code, stdout]).toEqual([4, expect.stringContaining('told')]);
    },
  );
});
