/** Guarded commands as people and programs call them: judged, asked about, and run where they belong. */

import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ownerId } from '../../src/lib/owner.ts';
import type { AuditLineView } from '../../src/protocol/audit.ts';
import type { GuardResult } from '../../src/protocol/guard.ts';
import { Approvals } from '../../src/sdk/approvals.ts';
import { Audit } from '../../src/sdk/audit.ts';
import { DaemonClient } from '../../src/sdk/client.ts';
import { followWireEvents } from '../../src/sdk/events.ts';
import { evaluate, guard } from '../../src/sdk/guard.ts';
import { type CliResult, cliLine, newFolder, type RunningCli, sally, startSally } from '../support/cli.ts';
import { testDaemon } from '../support/daemon.ts';
import { testDns } from '../support/dns-server.ts';
import { testEngine } from '../support/engine.ts';
import { engineUnderTest, imageFlags, onDocker, testImage } from '../support/engine-under-test.ts';
import { helloServer } from '../support/gate-box.ts';
import { removeOwned } from '../support/owned-objects.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { asRoot, dockerAlone, when } from '../support/selection.ts';

let stateDir = '';
const env = (): Record<string, string> => ({ SALLYPORT_STATE_DIR: stateDir });
const image = imageFlags;

beforeAll(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'sally-guard-'));
});

afterAll(async () => {
  await sally(['daemon', 'stop'], { env: env() });
  await removeOwned(testEngine().connection, ownerId(process.getuid?.() ?? -1, stateDir));
  await rm(stateDir, { recursive: true, force: true });
});

const guarded = async (args: readonly string[], more: Record<string, string> = {}): Promise<CliResult> =>
  await sally(['guard', ...args], { env: { ...env(), ...more } });
const resultOf = ({ stdout }: CliResult): GuardResult => JSON.parse(stdout) as GuardResult;

/** Lines of the audit log that are about a command. */
async function audited(command: string): Promise<readonly AuditLineView[]> {
  const { stdout } = await sally(['audit', '--json'], { env: env() });
  const lines = stdout.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as AuditLineView).filter((line) => line.command === command);
}

/** A command line at a terminal: what is typed goes to it, what it says is in `stdout`. */
function atTerminal(args: string, more: Record<string, string> = {}, prefix = ''): RunningCli {
  const line = `${prefix}${cliLine()} ${args}`;
  const options = { command: ['script'], openInput: true, env: { ...env(), ...more } };
  return startSally(['-qec', line, '/dev/null'], options);
}

async function type({ child, said, result }: RunningCli, after: string, words: string): Promise<CliResult> {
  await said(after);
  child.stdin?.write(`${words}\n`);
  const ended = await result;
  child.stdin?.end();
  return ended;
}

const withTerminal = requirement('script', commandExists('script'));

describe('sally guard', () => {
  test('[C1][C7] runs what is safe here, without a daemon, with its exit code, on record', async () => {
    const folder = await newFolder('own');
    const command = 'pwd; cat; echo oops >&2; exit 3';
    const ran = await sally(['guard', '--', command], { env: env(), cwd: folder, input: 'typed' });
    expect(ran).toMatchObject({ code: 3, stdout: `${folder}\n`, stderr: 'oops\n' });
    expect(existsSync(join(stateDir, 'daemon.sock'))).toBe(false);
    expect((await audited(command)).map(({ type, where, outcome }) => `${type} ${where} ${outcome}`)).toEqual(
      ['guard host started', 'guard host exit 3'],
    );
    expect(await guarded(['--', 'echo', '$(id)'])).toMatchObject({ code: 0, stdout: '$(id)\n' });
    expect(await guarded(['--timeout', '100ms', '--', 'sleep 1000'])).toMatchObject({ code: 124 });
  });

  test('[C1][C2][C5] runs what is unknown in a strict sandbox that has nothing of this environment', async () => {
    const command = 'frobnicate 2>/dev/null; id -u; pwd; env; touch /x';
    const ran = await guarded(['--json', ...image(), '--', command], { MY_SECRET: 'do-not-pass' });
    const result = resultOf(ran);
    expect(ran.code).toBe(1);
    expect(result).toMatchObject({
      status: 'error',
      exitCode: 1,
      sandboxed: true,
      engine: engineUnderTest,
      reason: expect.stringContaining('frobnicate'),
      stderr: expect.stringContaining('Read-only file system'),
    });
    // bubblewrap of an ordinary user has no control groups, so it cannot hold the strict profile.
    const isStrict = onDocker || process.getuid?.() === 0;
    if (isStrict) expect(result.stdout.split('\n').slice(0, 2)).toEqual(['65534', '/workspace']);
    else expect(result.reason).toContain('standard profile');
    expect(result.stdout.includes('HOST_UID=')).toBe(!isStrict);
    expect(result.stdout).not.toContain('do-not-pass');
    const { stdout } = await sally(['audit', '--type', 'exec', '--since', '10m', '--json'], { env: env() });
    expect(stdout).toContain('guard: unknown: frobnicate');
  });

  test('[C1] takes a tool of an agent, and one that is not known belongs in a sandbox', async () => {
    expect(await guarded(['--tool', 'bash', '--args', '{"command":"echo here"}'])).toMatchObject({
      code: 0,
      stdout: 'here\n',
    });
    const unknown = await guarded(['--json', ...image(), '--tool', 'send-mail', '--args', '{"to":"x"}']);
    expect(unknown.code).toBe(127);
    expect(resultOf(unknown)).toMatchObject({ status: 'error', exitCode: 127, sandboxed: true });
    for (const wrong of [
      ['--tool', 'x', '--', 'ls'],
      ['--args', '{}', '--', 'ls'],
      ['--tool', 'x', '--args', '{'],
      [],
    ]) {
      expect((await guarded(wrong)).code, wrong.join(' ')).toBe(2);
    }
  });

  test('[C1] rejects what nobody can be asked about: by --no-ask, and on a machine that builds', async () => {
    const started = performance.now();
    for (const [args, more] of [
      [['--no-ask'], {}],
      [[], { CI: 'true' }],
    ] as const) {
      const ran = await guarded([...args, '--json', '--', 'rm -rf /'], more);
      expect(ran.code).toBe(126);
      expect(resultOf(ran)).toEqual({
        status: 'rejected',
        stdout: '',
        stderr: '',
        exitCode: null,
        durationMs: 0,
        sandboxed: false,
        engine: 'none',
        reason: expect.stringContaining('nobody to ask'),
      });
    }
    // At once, and not when a question expires.
    expect(performance.now() - started).toBeLessThan(120_000);
    expect((await audited('rm -rf /')).map(({ outcome }) => outcome)).toEqual(['rejected', 'rejected']);
  });

  test.runIf(withTerminal)('[C1] asks at a terminal in place, and takes only yes for a yes', async () => {
    const args = `guard ${image().join(' ')} -- 'rm -rf /; echo ended'`;
    const denied = await type(atTerminal(args), 'Run it? [y/N] ', '');
    expect(denied.stdout).toContain('rm removes / and all below it');
    expect(denied.stdout).toContain('it did not run');
    expect(denied.code).toBe(126);
    const approved = await type(atTerminal(args), 'Run it? [y/N] ', 'y');
    expect(approved.stdout).toContain('ended');
    expect(approved.code).toBe(0);
    const lines = await audited('rm -rf /; echo ended');
    expect(lines.filter(({ type }) => type === 'approval').map(({ outcome }) => outcome)).toEqual([
      'denied',
      'approved',
    ]);
  });

  test('[C1] waits for somebody else where there is no terminal, and whoever asked cannot answer', async () => {
    await sally(['daemon', 'start'], { env: env() });
    const client = new DaemonClient({ stateDir, startDaemon: false, anyEngine: true });
    const token = readFileSync(join(stateDir, 'approver-token'), 'utf8').trim();
    for (const verb of ['deny', 'approve'] as const) {
      const { sequence } = await client.json<{ sequence: number }>('GET', '/v1/health');
      const running = startSally(['guard', '--json', ...image(), '--', 'rm -rf / --no-preserve-root'], {
        env: env(),
      });
      let id = '';
      for await (const event of followWireEvents(client, { since: sequence })) {
        if (event.type !== 'approval.pending') continue;
        id = event.approval_id;
        break;
      }
      expect((await sally(['approvals', '--json'], { env: env() })).stdout).toContain(id);
      const own = await sally([verb, id, '--json'], { env: env() });
      expect(JSON.parse(own.stdout)).toMatchObject({ error: { code: 'approval_refused' } });
      const wrong = { ...env(), SALLYPORT_APPROVER_TOKEN: 'wrong' };
      expect((await sally([verb, id], { env: wrong })).code).toBe(1);
      const right = { ...env(), SALLYPORT_APPROVER_TOKEN: token };
      expect((await sally([verb, id], { env: right })).code).toBe(0);
      const ended = await running.result;
      expect(resultOf(ended)).toMatchObject(
        verb === 'deny'
          ? { status: 'rejected', sandboxed: false, reason: expect.stringContaining('denied by approver') }
          : { status: 'error', sandboxed: true, reason: expect.stringContaining(`approved (${id})`) },
      );
      expect(ended.stderr).toContain(`sally approve ${id}`);
    }
    client.close();
  });
});

/** By the gate's own proxy. */
const asks = (host: string, port: number): string => `
import socket
sock = socket.create_connection(('127.0.0.1', 3128))
sock.sendall(b'GET http://${host}:${port}/ HTTP/1.1\\r\\nHost: ${host}:${port}\\r\\nConnection: close\\r\\n\\r\\n')
print(sock.makefile('rb').read().decode().split('\\r\\n\\r\\n', 1)[1])
`;

describe('[C1][C2] the folder of a guarded command that was sent away', () => {
  const inFolder = async (folder: string, ...args: readonly string[]): Promise<CliResult> =>
    await sally(['guard', '--json', ...image(), ...args], { env: env(), cwd: folder });

  test('is there, read-only, also where nobody may not read it, and its rights stay', async () => {
    for (const mode of [0o755, 0o700]) {
      const folder = await newFolder('own');
      writeFileSync(join(folder, 'here.txt'), 'right\n', { mode: mode === 0o700 ? 0o600 : 0o644 });
      chmodSync(folder, mode);
      const result = resultOf(
        await inFolder(folder, '--', `frobnicate 2>/dev/null; ls; cat ${folder}/here.txt; touch new`),
      );
      expect(result, String(mode)).toMatchObject({
        status: 'error',
        sandboxed: true,
        stdout: 'here.txt\nright\n',
        stderr: expect.stringContaining('Read-only file system'),
      });
      const isStrict = onDocker || process.getuid?.() === 0;
      if (isStrict) expect(result.reason.includes('a copy of this folder')).toBe(mode === 0o700);
      expect(statSync(folder).mode & 0o777).toBe(mode);
    }
  });

  test('is worked in by the shell whose language is judged, as on the host', async () => {
    const folder = await newFolder('own');
    const line = '[[ a == a* ]] && echo {1..3}';
    const here = resultOf(await inFolder(folder, '--', line));
    expect(here).toMatchObject({ sandboxed: false, stdout: '1 2 3\n' });
    const away = resultOf(await inFolder(folder, '--', `frobnicate 2>/dev/null; ${line}`));
    expect(away).toMatchObject({ sandboxed: true, stdout: '1 2 3\n' });
  });

  test('is left out where the rules for mounts refuse it, and the answer says so', async () => {
    const result = resultOf(await inFolder('/etc', '--', 'frobnicate 2>/dev/null; pwd'));
    expect(result).toMatchObject({ status: 'success', sandboxed: true });
    expect(result.stdout).not.toContain('workspace');
    expect(result.reason).toContain('did not have this folder');
  });

  when(dockerAlone).test('is a copy with --writable-copy, from which changes are brought back', async () => {
    const folder = await newFolder('own');
    writeFileSync(join(folder, 'a.txt'), 'old\n');
    const { sandbox = '', ...result } = resultOf(
      await inFolder(folder, '--writable-copy', '--', 'frobnicate 2>/dev/null; echo new > a.txt'),
    );
    expect(result).toMatchObject({ status: 'success', sandboxed: true });
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('old\n');
    expect((await sally(['diff', sandbox], { env: env() })).stdout).toContain('+new');
    expect((await sally(['apply', sandbox], { env: env(), cwd: folder })).code).toBe(0);
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('new\n');
    expect((await sally(['rm', '--force', sandbox], { env: env() })).code).toBe(0);
  });
});

describe('[C1] sally guard --allow', () => {
  test('gives the sandbox a way to what it names and to nothing else, and never with the strict profile', async () => {
    const { port, seen } = await helloServer();
    const dns = await testDns({ 'good.test': ['127.0.0.1'], 'evil.test': ['127.0.0.1'] });
    const daemon = await testDaemon({ SALLYPORT_DNS_SERVERS: dns.server });
    await daemon.health();
    const ask = async (host: string, ...flags: readonly string[]): Promise<CliResult> =>
      await guarded(['--json', ...image(), ...flags, '--', 'python3', '-c', asks(host, port)], {
        SALLYPORT_STATE_DIR: daemon.stateDir,
      });
    const allowed = ['--allow', `127.0.0.1:${port}`, '--allow', `good.test:${port}`];
    expect(resultOf(await ask('good.test', ...allowed))).toMatchObject({
      status: 'success',
      stdout: 'hello from the test\n',
      sandboxed: true,
      engine: engineUnderTest,
    });
    const denied = resultOf(await ask('evil.test', ...allowed));
    expect(JSON.parse(denied.stdout)).toMatchObject({ error: { code: 'not_allowed', host: 'evil.test' } });
    expect(resultOf(await ask('good.test'))).toMatchObject({
      status: 'error',
      sandboxed: true,
      stderr: expect.stringContaining('ConnectionRefusedError'),
    });
    expect(seen).toEqual([`GET good.test:${port}/`]);
    for (const wrong of [
      ['--profile', 'strict', ...allowed],
      ['--allow', '*.co.uk'],
    ]) {
      expect((await ask('good.test', ...wrong)).code, wrong.join(' ')).not.toBe(0);
    }
    expect(seen).toHaveLength(1);
    const egress = { allow: [`127.0.0.1:${port}`, `good.test:${port}`] };
    const { client, stateDir: own } = daemon;
    const command = ['python3', '-c', asks('good.test', port)];
    expect(
      await guard(command, { sandbox: { ...testImage(), egress } }, { client, stateDir: own }),
    ).toMatchObject({ status: 'success', stdout: 'hello from the test\n' });
  });
});

describe('[C1] approving in a hurry', () => {
  test.runIf(withTerminal)('the fourth of a class within a minute takes the typed word', async () => {
    const { client, stateDir: own } = await testDaemon();
    const approvals = new Approvals({ client });
    const shared = { SALLYPORT_STATE_DIR: own };
    await client.json('GET', '/v1/health');
    const token = readFileSync(join(own, 'approver-token'), 'utf8').trim();
    const pending = async (answer: (id: string) => Promise<unknown>) => {
      let answered: Promise<unknown> = Promise.resolve();
      const decided = await approvals.ask(
        { command: 'rm -rf /' },
        {
          pending: ({ id }) => {
            answered = answer(id);
          },
        },
      );
      await answered;
      return decided.state;
    };
    for (let count = 0; count < 3; count++) {
      const state = await pending((id) => approvals.answer(id, { decision: 'approve' }, token));
      expect(state).toBe('approved');
    }
    const fourth = await pending(async (id) => {
      await expect(approvals.answer(id, { decision: 'approve' }, token)).rejects.toMatchObject({
        code: 'approval_word',
      });
      const typed = await type(atTerminal(`approve ${id}`, shared), 'Type approve', 'yes');
      expect(typed.stdout).toContain('not approved without the word');
      const words = await type(atTerminal(`approve ${id}`, shared), 'Type approve', 'approve');
      expect(words.code).toBe(0);
    });
    expect(fourth).toBe('approved');
  });
});

describe('[N5] a question that is longer than its line in the list', () => {
  test.runIf(withTerminal)('shows that it is, and takes a yes to all of it', async () => {
    const { client, stateDir: own } = await testDaemon();
    const approvals = new Approvals({ client });
    const shared = { SALLYPORT_STATE_DIR: own };
    await client.json('GET', '/v1/health');
    const command = `rm -rf ./build ${'./harmless '.repeat(20)} /home`;
    const short = 'rm -rf /home';
    const answered = { short: '', long: '' };
    const ask = async (text: string, answer: (id: string) => Promise<void>): Promise<string> => {
      let work: Promise<void> = Promise.resolve();
      const { state } = await approvals.ask(
        { command: text },
        {
          pending: ({ id }) => {
            work = answer(id);
          },
        },
      );
      await work;
      return state;
    };
    answered.long = await ask(command, async (id) => {
      const { stdout } = await sally(['approvals'], { env: shared });
      expect(stdout).toMatch(/harmless.*… and \d+ more characters\n/);
      const unsure = await type(atTerminal(`approve ${id}`, shared), 'Run it? [y/N] ', '');
      expect(unsure.stdout).toContain('./harmless  /home');
      expect(unsure.code).not.toBe(0);
      expect((await approvals.get(id)).state).toBe('pending');
      expect((await type(atTerminal(`approve ${id}`, shared), 'Run it? [y/N] ', 'y')).code).toBe(0);
    });
    // All of this one was in the list.
    answered.short = await ask(short, async (id) => {
      expect((await sally(['approvals'], { env: shared })).stdout).toContain(`${short}\n`);
      expect((await atTerminal(`approve ${id}`, shared).result).code).toBe(0);
    });
    expect(answered).toEqual({ short: 'approved', long: 'approved' });
  });
});

/** Where bubblewrap is installed it takes root to hide it. */
const hasBubblewrap = existsSync('/usr/bin/bwrap');
const hiding = hasBubblewrap
  ? `unshare -m sh -c 'mount --bind /dev/null /usr/bin/bwrap && exec "$@"' sh `
  : '';
const canHide = !hasBubblewrap || commandExists('unshare');

when(dockerAlone).describe('[C4] sally guard where there is no engine', () => {
  const nowhere = { DOCKER_HOST: 'unix:///nowhere.sock' };

  test('still runs here what belongs here, and rejects the rest where nobody can be asked', async () => {
    const own = { ...nowhere, SALLYPORT_STATE_DIR: join(stateDir, 'without') };
    expect(await guarded(['--', 'echo', 'here'], own)).toMatchObject({ code: 0, stdout: 'here\n' });
    for (const command of ['node -e 1', 'rm -rf /']) {
      const ran = await guarded(['--json', '--', command], own);
      expect(ran.code, command).toBe(126);
      expect(resultOf(ran)).toMatchObject({ status: 'rejected', sandboxed: false, engine: 'none' });
    }
    expect(await sally(['audit', 'verify'], { env: own })).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^whole: 4 lines; the last, 4, is [0-9a-f]{64}\n$/),
    });
    expect((await sally(['audit', '--type', 'exec'], { env: own })).stdout).toBe('');
    expect((await sally(['audit', '--type', 'guard', '--since', '1h'], { env: own })).stdout).toContain(
      'rejected',
    );
    const log = join(own.SALLYPORT_STATE_DIR, 'audit', 'audit.jsonl');
    writeFileSync(log, readFileSync(log, 'utf8').replace('"exit 0"', '"exit 1"'));
    expect(await sally(['audit', 'verify'], { env: own })).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('audit.jsonl:3: line 2 before it was changed'),
    });
    for (const wrong of [
      ['--since', 'soon'],
      ['--type', 'x'],
      ['verify', '--head', 'x'],
    ]) {
      expect((await sally(['audit', ...wrong], { env: own })).code).toBe(2);
    }
  });

  when(...(hasBubblewrap ? [asRoot] : []), requirement('unshare', canHide), withTerminal).test(
    'runs it without isolation only after somebody typed so, for a short time',
    async () => {
      const own = { ...nowhere, SALLYPORT_STATE_DIR: join(stateDir, 'hidden') };
      const node = `'${process.execPath}'`;
      const ask = async (args: string, words: string) =>
        await type(atTerminal(`guard --json ${args}`, own, hiding), 'with NO ISOLATION: ', words);
      const denied = await ask(`-- ${node} -e 'console.log(6 * 7)'`, 'y');
      expect(denied.stdout).toContain('neither Docker nor bubblewrap is there');
      expect(denied.stdout).toContain('"status": "rejected"');
      expect(denied.code).toBe(126);
      const approved = await ask(`-- ${node} -e 'console.log(6 * 7)'`, 'approve');
      expect(approved.stdout).toContain('"stdout": "42\\n"');
      expect(approved.stdout).toContain('"sandboxed": false');
      expect(approved.stdout).toContain('without isolation');
      expect(approved.code).toBe(0);
      const late = await ask(`--timeout 500ms -- ${node} -e 'setInterval(() => {}, 1e6)'`, 'approve');
      expect(late.stdout).toContain('"status": "timeout"');
      expect(late.code).toBe(124);
    },
  );
});

describe('[C7] the audit log over the API', () => {
  test('is searched and looked over as on the command line', async () => {
    const { client, stateDir: own } = await testDaemon();
    const connection = { client, stateDir: own };
    const before = new Date();
    expect(await guard('frob; echo in', { sandbox: testImage() }, connection)).toMatchObject({
      sandboxed: true,
      stdout: 'in\n',
    });
    await guard('rm -rf /', { ask: false }, connection);
    const audit = new Audit({ client });
    const all = await collect(audit.search());
    expect(all.map(({ type, outcome }) => `${type} ${outcome}`)).toEqual([
      'exec started',
      'exec exit 0',
      'guard rejected',
    ]);
    const [ran] = all;
    expect(ran).toMatchObject({
      argv: ['bash', '-c', 'frob; echo in'],
      reason: expect.stringContaining('guard: '),
    });
    expect(await collect(audit.search({ type: 'guard' }))).toEqual(all.slice(2));
    expect(await collect(audit.search({ sandbox: String(ran?.sandbox) }))).toEqual(all.slice(0, 2));
    expect(await collect(audit.search({ since: before, type: 'exec' }))).toEqual(all.slice(0, 2));
    expect(await collect(audit.search({ since: '1h' }))).toEqual(all);
    expect(await collect(audit.search({ since: new Date(Date.now() + 3_600_000) }))).toEqual([]);
    for (const wrong of [{ since: 'soon' }, { type: 'x' as never }]) {
      await expect(collect(audit.search(wrong))).rejects.toMatchObject({ code: 'request_invalid' });
    }
    await expect(audit.verify({ head: 'x' })).rejects.toMatchObject({ code: 'request_invalid' });
    const verdict = await audit.verify();
    expect(verdict).toMatchObject({ ok: true, lines: 3, head: { n: 3 }, problems: [] });
    expect(await audit.verify({ head: verdict.head?.hash ?? '' })).toMatchObject({ ok: true });
    const shown = await sally(['audit', '--json'], { env: { SALLYPORT_STATE_DIR: own } });
    const lines = shown.stdout.trim().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as AuditLineView).n)).toEqual(all.map(({ n }) => n));
    const log = join(own, 'audit', 'audit.jsonl');
    writeFileSync(log, readFileSync(log, 'utf8').replace('"exit 0"', '"exit 1"'));
    expect(await audit.verify()).toMatchObject({ ok: false, problems: [{ place: 'audit.jsonl:3' }] });
  });
});

async function collect<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

describe('[C1] the guard of the SDK', () => {
  test('judges without a daemon', async () => {
    expect(await evaluate('ls')).toMatchObject({ command: 'ls', route: 'host', class: 'safe' });
    expect(await evaluate(['rm', '-rf', '/'])).toMatchObject({ route: 'sandbox', confirm: true });
    expect(await evaluate({ tool: 'frob' })).toMatchObject({ route: 'sandbox', class: 'unknown' });
  });

  test('runs a command where it belongs', async () => {
    const { client, stateDir: own } = await testDaemon();
    const sandbox = testImage();
    const connection = { client, stateDir: own };
    const folder = await newFolder('own');
    expect(await guard('pwd', { cwd: folder }, connection)).toMatchObject({
      status: 'success',
      stdout: `${folder}\n`,
      engine: 'host',
    });
    expect(await guard(['frobnicate'], { sandbox }, connection)).toMatchObject({
      status: 'error',
      exitCode: 127,
      sandboxed: true,
      engine: engineUnderTest,
    });
    expect(await guard('frob; sleep 1000', { sandbox, timeoutMs: 500 }, connection)).toMatchObject({
      status: 'timeout',
      sandboxed: true,
    });
    expect(await guard('rm -rf /', { ask: false }, connection)).toMatchObject({ status: 'rejected' });
    expect(await guard('rm -rf /', { approvalTimeoutMs: 1 }, connection)).toMatchObject({
      status: 'rejected',
      reason: expect.stringContaining('not answered in time'),
    });
    const token = readFileSync(join(own, 'approver-token'), 'utf8').trim();
    const onPending = ({ id }: { readonly id: string }): void =>
      void new Approvals({ client }).answer(id, { decision: 'approve' }, token);
    expect(await guard('rm -rf /; echo $?', { sandbox, onPending }, connection)).toMatchObject({
      status: 'success',
      stdout: '1\n',
      sandboxed: true,
    });
    const copied = { path: folder, mode: 'copy' as const };
    writeFileSync(join(folder, 'kept'), 'kept');
    expect(
      await guard('frob; rm kept; ls -A', { sandbox: { ...sandbox, workspace: copied } }, connection),
    ).toMatchObject({ status: 'success', stdout: '', sandboxed: true });
    expect(existsSync(join(folder, 'kept'))).toBe(true);
    const cancel = AbortSignal.abort();
    await expect(guard('ls', { signal: cancel }, connection)).rejects.toThrow();
  });
});
