/** `sally mcp`: sandboxes as tools, with the protocol's own client, in both of its eras. */

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { Sandbox } from '../../src/sdk/sandbox.ts';
import { newFolder, sally } from '../support/cli.ts';
import { onDocker } from '../support/engine-under-test.ts';
import { deletions, type Era, mcpClient, type TestMcp } from '../support/mcp-client.ts';
import { when, withLimits } from '../support/selection.ts';
import { stateFolder } from '../support/state-folder.ts';

const boxes = async (): Promise<readonly string[]> =>
  (await Sandbox.list({ stateDir: stateFolder(), anyEngine: true })).map(({ name }) => name);

/** The first one, which is made when something is run. */
async function firstBox({ call }: TestMcp): Promise<string> {
  await call('run', { command: 'true' });
  const { sandboxes } = (await call('sandbox_list', {})).data as { sandboxes: { name: string }[] };
  return sandboxes[0]?.name ?? '';
}

/** Answers on port 8000 of the sandbox, and writes to a pipe when it does. */
const littleServer = `
import socket
server = socket.create_server(("127.0.0.1", 8000))
open("/tmp/listens", "w").write("now\\n")
while True:
    client = server.accept()[0]
    client.recv(65536)
    client.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\nseen")
    client.close()
`;

describe.each<Era>(['2025', '2026'])('sally mcp for a client of %s', (era) => {
  it('lists its tools in few words, and runs commands whose failure is a result', async () => {
    const { client, call } = await mcpClient(era);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name).sort()).toEqual([
      'diff',
      'edit_file',
      'kill',
      'list_files',
      'logs',
      'net_log',
      'publish_port',
      'read_file',
      'request_access',
      'run',
      'sandbox_create',
      'sandbox_list',
      'sandbox_remove',
      'search_files',
      'wait',
      'write_file',
    ]);
    // What a model reads before its first word; the answers' schemas are not for it.
    const read = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
    expect(JSON.stringify(read).length).toBeLessThan(9000);
    const failed = await call('run', { command: 'echo out; echo err >&2; exit 3' });
    expect(failed).toMatchObject({
      isError: false,
      data: { state: 'ended', exit_code: 3, stdout: 'out\n', stderr: 'err\n', timed_out: false },
    });
    expect(failed.text).toContain('[exit code 3]');
    const late = await call('run', { command: 'sleep 60', timeout_ms: 200 });
    expect(late.data).toMatchObject({ timed_out: true });
    const input = await call('run', { command: 'cat', stdin: 'given', env: { A: 'b' }, cwd: '/tmp' });
    expect(input.data).toMatchObject({ stdout: 'given' });
  });

  it('writes, reads, edits, lists and searches files', async () => {
    const { call } = await mcpClient(era);
    await call('write_file', { path: 'src/a.txt', content: 'one\ntwo\nthree\n' });
    const part = await call('read_file', { path: 'src/a.txt', from_line: 2, lines: 1 });
    expect(part.data).toMatchObject({ text: 'two', total_lines: 4, truncated: true });
    expect((await call('edit_file', { path: 'src/a.txt', old: 'two', new: 'TWO' })).data).toMatchObject({
      replaced: 1,
    });
    const twice = await call('edit_file', { path: 'src/a.txt', old: 'e', new: 'E' });
    expect(twice.isError).toBe(true);
    expect(JSON.parse(twice.text)).toMatchObject({
      error: { code: 'usage', message: expect.stringContaining('occurs 3 times') },
    });
    const found = await call('search_files', { pattern: 'T[W]O', include: '*.txt' });
    expect((found.data as { matches: string[] }).matches).toEqual([expect.stringMatching(/a\.txt:2:TWO$/)]);
    const listed = await call('list_files', { path: 'src' });
    expect(listed.data).toMatchObject({ entries: [{ name: 'a.txt', kind: 'file', size: 14 }] });
    const missing = await call('read_file', { path: 'none' });
    expect(missing.isError).toBe(true);
  });
});

describe('sally mcp', () => {
  it('tells the last line of what runs, and kills it when the call is cancelled, not the server', async () => {
    const { call } = await mcpClient('2026');
    const stop = new AbortController();
    const told: string[] = [];
    const running = call(
      'run',
      { command: 'echo begun; echo $$ > /tmp/pid; sleep 600' },
      {
        signal: stop.signal,
        onprogress: ({ message }) => {
          told.push(message ?? '');
          stop.abort();
        },
      },
    );
    await expect(running).rejects.toThrow();
    expect(told).toEqual(['begun']);
    const gone = await call('run', {
      command: 'while kill -0 "$(cat /tmp/pid)" 2>/dev/null; do :; done; echo gone',
      timeout_ms: 20_000,
    });
    expect(gone.data).toMatchObject({ stdout: 'gone\n' });
  });

  it('runs in the background, waits, shows what is printed, and kills', async () => {
    const { call } = await mcpClient('2025');
    const started = await call('run', { command: 'echo early; exec sleep 600', background: true });
    const exec = started.data['exec'];
    expect(started.data).toMatchObject({ state: 'running' });
    const first = await call('run', { command: 'true' });
    expect(first.data).toMatchObject({ exit_code: 0 });
    expect((await call('wait', { exec, timeout_ms: 50 })).data).toMatchObject({ state: 'running' });
    await call('kill', { exec });
    expect((await call('wait', { exec })).data).toMatchObject({ state: 'ended', stdout: 'early\n' });
    expect((await call('logs', { exec })).text).toBe('early\n');
  });

  when(withLimits).it(
    'lets a model choose a name, less than it has, and an image of the list, and nothing more',
    async () => {
      const ours = onDocker ? `${inject('engine').image}, ` : '';
      const { call } = await mcpClient('2026', [
        '--memory',
        '512m',
        '--max-sandboxes',
        '1',
        '--allow-image',
        'other:1',
      ]);
      const bad = async (input: Record<string, unknown>): Promise<string> => {
        const answer = await call('sandbox_create', input);
        expect(answer.isError).toBe(true);
        return answer.text;
      };
      expect(await bad({ memory: '1g' })).toContain('512 MiB');
      expect(await bad({ cpus: 64 })).toContain('at the most');
      expect(await bad({ image: 'evil:1' })).toContain(`Choose one of ${ours}other:1`);
      // What is not offered is not silently taken, nor silently left out.
      const human = {
        workspace: '/',
        mounts: [],
        egress: {},
        credentials: [],
        runtime: 'runc',
        user: 'root',
      };
      for (const [key, value] of Object.entries(human)) expect(await bad({ [key]: value })).toContain(key);
      const made = await call('sandbox_create', { memory: '64m', name: 'mcp-small' });
      expect(made.data).toMatchObject({ name: 'mcp-small', memory_bytes: 64 * 2 ** 20 });
      expect(await bad({ memory: '64m' })).toContain('there are 1 sandboxes already');
      expect((await call('run', { command: 'hostname', sandbox: 'none' })).isError).toBe(true);
      expect((await call('sandbox_remove', { sandbox: 'mcp-small' })).data).toEqual({ removed: 'mcp-small' });
      expect(await boxes()).not.toContain('mcp-small');
    },
  );

  it('shows the changes of a copied workspace, and leaves them where nobody has brought them out', async () => {
    const folder = await newFolder('own');
    await writeFile(join(folder, 'a.txt'), 'one\n');
    const mcp = await mcpClient('2026', ['--workspace', folder, '--workspace-mode', 'copy']);
    const name = await firstBox(mcp);
    await mcp.call('write_file', { path: 'a.txt', content: 'two\n' });
    const { data } = await mcp.call('diff', {});
    expect(data).toMatchObject({ files: ['a.txt'], truncated: false });
    expect(data['patch']).toContain('-one\n+two');
    await mcp.close();
    expect(await readFile(join(folder, 'a.txt'), 'utf8')).toBe('one\n');
    const applied = await sally(['apply', name]);
    expect(applied.code, applied.stderr).toBe(0);
    expect(await readFile(join(folder, 'a.txt'), 'utf8')).toBe('two\n');
    expect((await sally(['rm', '--force', name])).code).toBe(0);
  });

  it('ends with its client and leaves nothing, but the sandbox that the user named', async () => {
    const mcp = await mcpClient('2025');
    const name = await firstBox(mcp);
    expect(await boxes()).toContain(name);
    await mcp.close();
    expect(() => process.kill(mcp.pid, 0)).toThrow('ESRCH');
    expect(await boxes()).not.toContain(name);
    const kept = await mcpClient('2025', ['--name', 'mcp-kept']);
    expect(await firstBox(kept)).toBe('mcp-kept');
    // What the user stopped is started by the next call, whatever tool it calls.
    for (const [tool, input] of [
      ['run', { command: 'true' }],
      ['list_files', { path: '/' }],
    ] as const) {
      expect((await sally(['stop', 'mcp-kept'])).code).toBe(0);
      expect(await kept.call(tool, input)).toMatchObject({ isError: false });
    }
    await kept.close();
    expect(await boxes()).toContain('mcp-kept');
    expect((await sally(['rm', 'mcp-kept'])).code).toBe(0);
  });

  it('leaves nothing when it is killed, and each client has a sandbox of its own', async () => {
    const deleted = await deletions();
    const [one, two] = await Promise.all([mcpClient('2025'), mcpClient('2026')]);
    const names = [await firstBox(one), await firstBox(two)];
    expect(new Set(names).size).toBe(2);
    process.kill(one.pid, 'SIGKILL');
    for await (const gone of deleted) if (gone === names[0]) break;
    expect(await boxes()).toContain(names[1]);
  });

  it('publishes a port, and tells what the gate has denied', async () => {
    const { call } = await mcpClient('2026', ['--allow', 'allowed.example']);
    await call('run', { command: 'mkfifo /tmp/listens' });
    await call('run', { command: `exec python3 -c '${littleServer}'`, background: true });
    await call('run', { command: 'read -r _ < /tmp/listens' });
    const published = await call('publish_port', { port: 8000 });
    expect(published.data).toMatchObject({
      box: 8000,
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:/),
    });
    expect(await (await fetch(String(published.data['url']))).text()).toBe('seen');
    const dial = 'import socket; socket.create_connection(("denied.example", 80))';
    expect((await call('run', { command: `python3 -c '${dial}'` })).data).toMatchObject({ exit_code: 1 });
    const { decisions } = (await call('net_log', { denied_only: true })).data as { decisions: object[] };
    // A resolver may ask for the addresses of each kind.
    expect(decisions.length).toBeGreaterThan(0);
    for (const decision of decisions)
      expect(decision).toMatchObject({
        allowed: false,
        host: 'denied.example',
        advice: expect.stringContaining('denied.example'),
      });
  });

  it('prints the settings of clients, and writes them beside what is there', async () => {
    const folder = await newFolder('own');
    const printed = await sally(['mcp', 'install', 'codex', '--', '--preset', 'npm'], { cwd: folder });
    expect(printed.stdout).toMatch(
      /^\[mcp_servers\.sallyport\]\ncommand = ".*sally\.cjs"\nargs = \["mcp", "--preset", "npm"\]\n$/,
    );
    await mkdir(join(folder, '.cursor'));
    const file = join(folder, '.cursor', 'mcp.json');
    await writeFile(file, '{"mcpServers":{"other":{"command":"x"}}}', { mode: 0o640 });
    const written = await sally(['mcp', 'install', 'cursor', '--write', '--file', file]);
    expect(written.code, written.stderr).toBe(0);
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({
      mcpServers: { other: { command: 'x' }, sallyport: { args: ['mcp'] } },
    });
    await writeFile(file, '{broken');
    const refused = await sally(['mcp', 'install', 'cursor', '--write', '--file', file]);
    expect(refused.code).toBe(2);
    expect(await readFile(file, 'utf8')).toBe('{broken');
    expect((await sally(['mcp', 'install', 'vim'])).stderr).toContain(
      'claude, codex, cursor, opencode, vscode',
    );
  });
});
