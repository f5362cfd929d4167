/** The MCP server of the daemon: streamable HTTP with a token, in both eras of the protocol, with the official client. */

import { readFile, stat } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Sandbox } from '../../src/sdk/sandbox.ts';
import { newFolder, sally } from '../support/cli.ts';
import { deletions, type Era } from '../support/mcp-client.ts';
import { type HttpMcp, httpClient, mcpProfile, profileView } from '../support/mcp-http.ts';
import { stateFolder } from '../support/state-folder.ts';

const connection = { stateDir: stateFolder(), anyEngine: true };
const boxes = async (): Promise<readonly string[]> =>
  (await Sandbox.list(connection)).map(({ name }) => name);

async function onlyBox({ call }: HttpMcp): Promise<string> {
  await call('run', { command: 'true' });
  const { sandboxes } = (await call('sandbox_list', {})).data as { sandboxes: { name: string }[] };
  expect(sandboxes).toHaveLength(1);
  return sandboxes[0]?.name ?? '';
}

interface Raw {
  readonly status: number;
  readonly authenticate: string | undefined;
}

async function post(url: string, headers: Record<string, string>, body = '{}'): Promise<Raw> {
  return await new Promise((resolve, reject) => {
    const call = request(
      url,
      { method: 'POST', headers: { 'content-type': 'application/json', ...headers } },
      (answer) => {
        answer.resume();
        resolve({ status: answer.statusCode ?? 0, authenticate: answer.headers['www-authenticate'] });
      },
    );
    call.once('error', reject);
    call.end(body);
  });
}

describe.each<Era>(['2025', '2026'])('MCP over HTTP for a client of %s', (era) => {
  it('lists tools, runs commands, tells progress, and kills what is cancelled', async () => {
    const { client, call } = await httpClient(era, await mcpProfile(`both-${era}`));
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('run');
    expect(await call('run', { command: 'echo out; exit 3' })).toMatchObject({
      isError: false,
      data: { exit_code: 3, stdout: 'out\n' },
    });
    await call('write_file', { path: 'a.txt', content: 'one' });
    expect((await call('read_file', { path: 'a.txt' })).data).toMatchObject({ text: 'one' });
    const stop = new AbortController();
    const running = call(
      'run',
      { command: 'echo begun; echo $$ > /tmp/pid; exec sleep 600' },
      { signal: stop.signal, onprogress: () => stop.abort() },
    );
    await expect(running).rejects.toThrow();
    const gone = await call('run', {
      command: 'while kill -0 "$(cat /tmp/pid)" 2>/dev/null; do :; done; echo gone',
      timeout_ms: 20_000,
    });
    expect(gone.data).toMatchObject({ stdout: 'gone\n' });

    // The same for a call that nobody wants to hear of while it runs.
    await call('run', { command: 'mkfifo /tmp/begun' });
    const given = new AbortController();
    const silent = call('run', { command: 'echo $$ > /tmp/begun; exec sleep 600' }, { signal: given.signal });
    const { data } = await call('run', { command: 'cat /tmp/begun' });
    given.abort();
    await expect(silent).rejects.toThrow();
    const pid = Number(data['stdout']);
    const over = await call('run', {
      command: `while kill -0 ${pid} 2>/dev/null; do :; done; echo over`,
      timeout_ms: 20_000,
    });
    expect(over.data).toMatchObject({ stdout: 'over\n' });
  });

  it('gives each client a sandbox of its own, within what the human said', async () => {
    const profile = await mcpProfile(`own-${era}`, ['--memory', '256m', '--max-sessions', '2']);
    const first = await httpClient(era, profile, { 'sallyport-session': 'one' });
    const second = await httpClient(era, profile, { 'sallyport-session': 'two' });
    const names = [await onlyBox(first), await onlyBox(second)];
    expect(new Set(names).size).toBe(2);
    expect((await first.call('run', { command: 'true', sandbox: names[1] })).isError).toBe(true);
    expect((await first.call('sandbox_create', { memory: '1g' })).text).toContain('256 MiB');
    await expect(
      httpClient(era, profile, { 'sallyport-session': 'three' }).then(({ call }) => call('sandbox_list', {})),
    ).rejects.toThrow();
    expect((await profileView(`own-${era}`))?.sessions).toHaveLength(2);
  });

  it('removes what a silent client had, and what a revoked profile had', async () => {
    const brief = await mcpProfile(`idle-${era}`, ['--idle', '4s']);
    const deleted = await deletions();
    const silent = await httpClient(era, brief);
    const name = await onlyBox(silent);
    await silent.close();
    for await (const gone of deleted) if (gone === name) break;
    expect(await boxes()).not.toContain(name);

    const profile = await mcpProfile(`gone-${era}`);
    const mcp = await httpClient(era, profile);
    const revoked = await onlyBox(mcp);
    expect((await sally(['mcp', 'revoke', `gone-${era}`])).code).toBe(0);
    expect(await boxes()).not.toContain(revoked);
    await expect(mcp.call('run', { command: 'true' })).rejects.toThrow();
  });
});

describe('MCP over HTTP', () => {
  it('ends a session with its client, and is there again with the next daemon', async () => {
    const profile = await mcpProfile('ends');
    const mcp = await httpClient('2025', profile);
    const name = await onlyBox(mcp);
    await mcp.end();
    expect(await boxes()).not.toContain(name);
    expect((await profileView('ends'))?.sessions).toEqual([]);
    expect((await sally(['daemon', 'stop'])).code).toBe(0);
    expect((await profileView('ends'))?.url).toBe(profile.url);
    expect((await (await httpClient('2025', profile)).call('sandbox_list', {})).data).toEqual({
      sandboxes: [],
    });
  });

  it('is for whoever has the token, from this machine and no page', async () => {
    const { url, token } = await mcpProfile('guarded');
    const good = { authorization: `Bearer ${token}` };
    expect((await post(url, good)).status).toBe(400);
    expect(await post(url, {})).toEqual({ status: 401, authenticate: 'Bearer' });
    expect((await post(url, { authorization: 'Bearer sallymcp_wrong' })).status).toBe(401);
    expect((await post(url, { ...good, host: 'evil.example' })).status).toBe(403);
    expect((await post(url, { ...good, origin: 'http://evil.example' })).status).toBe(403);
    const unknown = await post(
      url,
      { ...good, 'mcp-session-id': 'none' },
      '{"jsonrpc":"2.0","id":1,"method":"ping"}',
    );
    expect(unknown.status).toBe(404);
    expect((await post(url.replace('/mcp', '/v1/sandboxes'), good)).status).toBe(404);
    const large = Buffer.alloc(17 * 2 ** 20, 0x20).toString('latin1');
    expect((await post(url, good, large)).status).toBe(413);
    const renewed = await sally(['mcp', 'token', 'guarded', '--json']);
    expect((await post(url, good)).status).toBe(401);
    const { token: next } = JSON.parse(renewed.stdout) as { token: string };
    expect((await post(url, { authorization: `Bearer ${next}` })).status).toBe(400);
    const listed = await sally(['mcp', 'ls', '--json']);
    expect(listed.stdout).not.toContain(next);
  });

  it('answers a short call whole, and a long one by a stream that is open', async () => {
    const { url, token } = await mcpProfile('short');
    const ask = async (params: object, session?: string): Promise<Response> =>
      await fetch(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          authorization: `Bearer ${token}`,
          ...(session === undefined ? {} : { 'mcp-session-id': session }),
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...params }),
      });
    const clientInfo = { name: 't', version: '1' };
    const began = await ask({
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo },
    });
    expect(await began.json()).toMatchObject({ id: 1, result: { serverInfo: { name: 'sallyport' } } });
    const session = began.headers.get('mcp-session-id') ?? '';
    const run = (command: string, _meta: object): object => ({
      method: 'tools/call',
      params: { name: 'run', arguments: { command }, _meta },
    });
    const short = await ask(run('echo short', {}), session);
    expect(short.headers.get('content-type')).toBe('application/json');
    expect(await short.json()).toMatchObject({ id: 1, result: { structuredContent: { stdout: 'short\n' } } });
    // Its head and its progress are there while it runs: it ends when this test has read them.
    const long = await ask(run('echo told; read -r _ < /tmp/go', { progressToken: 7 }), session);
    expect(long.headers.get('content-type')).toBe('text/event-stream');
    const pieces = long.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await pieces?.read())?.value).toContain('"message":"told"');
    await pieces?.cancel();
  });

  it('keeps a session from a client of another token', async () => {
    const mine = await mcpProfile('mine');
    const other = await mcpProfile('other');
    const initialize = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } },
    });
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const began = await fetch(mine.url, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${mine.token}` },
      body: initialize,
    });
    const session = began.headers.get('mcp-session-id') ?? '';
    await began.text();
    const ended = async (token: string): Promise<number> =>
      (
        await fetch(mine.url, {
          method: 'DELETE',
          headers: { authorization: `Bearer ${token}`, 'mcp-session-id': session },
        })
      ).status;
    expect(await ended(other.token)).toBe(404);
    expect(await ended(mine.token)).toBe(200);
  });

  it('is told to clients without its token, which they have from where their settings say', async () => {
    const profile = await mcpProfile('told');
    const folder = await newFolder('own');
    const install = async (client: string, ...words: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await sally(['mcp', 'install', client, '--http', 'told', ...words]);
      expect(code, stderr).toBe(0);
      expect(stderr).toContain('sally mcp token told');
      return stdout;
    };
    const { url, token } = profile;
    expect(await install('codex')).toBe(
      `[mcp_servers.sallyport]\nurl = "${url}"\nbearer_token_env_var = "SALLYPORT_MCP_TOKEN"\n`,
    );
    for (const client of ['cursor', 'opencode', 'vscode']) {
      const printed = await install(client);
      expect(printed).toContain(url);
      expect(printed).not.toContain(token);
    }
    const file = join(folder, '.mcp.json');
    await install('claude', '--write', '--file', file);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const written = await readFile(file, 'utf8');
    expect(written).not.toContain(token);
    // As the client reads it.
    const read = JSON.parse(written.replaceAll(`\${SALLYPORT_MCP_TOKEN}`, token)) as {
      mcpServers: { sallyport: { type: string; url: string; headers: { Authorization: string } } };
    };
    const { type, headers, ...rest } = read.mcpServers.sallyport;
    expect(type).toBe('http');
    const mcp = await httpClient('2025', { ...rest, token: headers.Authorization.replace('Bearer ', '') });
    expect((await mcp.call('sandbox_list', {})).isError).toBe(false);
    const unknown = await sally(['mcp', 'install', 'claude', '--http', 'nobody']);
    expect(unknown.stderr).toContain('there is no profile "nobody"');
    const flags = await sally(['mcp', 'install', 'claude', '--http', 'told', '--', '--preset', 'npm']);
    expect(flags.code).toBe(2);
  });

  it('asks a human for a host, and takes no answer from who asked', async () => {
    const mcp = await httpClient(
      '2026',
      await mcpProfile('asks', ['--allow', 'a.example', '--deny', 'no.example']),
    );
    await onlyBox(mcp);
    const pending = await mcp.call('request_access', { hosts: ['b.example'], reason: 'tests', wait_ms: 0 });
    expect(pending.data).toMatchObject({
      state: 'pending',
      advice: expect.stringContaining('sally approve'),
    });
    const id = String(pending.data['id']);
    const refused = await sally(['approve', id]);
    expect(refused.stderr).toContain('terminal');
    const token = (await readFile(`${stateFolder()}/approver-token`, 'utf8')).trim();
    const approver = { SALLYPORT_APPROVER_TOKEN: token };
    const remembered = await sally(['approve', id, '--remember'], { env: approver });
    expect(remembered.stderr).toContain('never remembered');
    const name = await onlyBox(mcp);
    const rules = async (): Promise<readonly string[]> =>
      (await (await Sandbox.connect(name, connection)).net.info()).allow;
    expect(await rules()).toEqual(['a.example']);
    expect((await sally(['approve', id], { env: approver })).code).toBe(0);
    expect(await rules()).toEqual(['a.example', 'b.example']);

    const waiting = mcp.call('request_access', { hosts: ['c.example'] });
    const asked = await pendingId(name);
    expect((await sally(['deny', asked], { env: approver })).code).toBe(0);
    expect((await waiting).data).toMatchObject({ state: 'denied' });
    expect(await rules()).toEqual(['a.example', 'b.example']);
    expect((await mcp.call('request_access', { hosts: ['no.example'] })).text).toContain(
      'denied by the user',
    );
    expect((await mcp.call('request_access', { hosts: ['http://x'] })).isError).toBe(true);
  });
});

/** Of the question about this sandbox, as soon as there is one. */
async function pendingId(name: string): Promise<string> {
  for (;;) {
    const { stdout } = await sally(['approvals', '--json']);
    const found = (JSON.parse(stdout) as { id: string; command: string }[]).find(({ command }) =>
      command.includes(` ${name} `),
    );
    if (found !== undefined) return found.id;
  }
}
