/** MCP over HTTP against a client that does not keep to what its profile allows. */

import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { McpTokenView } from '../../src/protocol/mcp.ts';
import { Sandbox } from '../../src/sdk/sandbox.ts';
import { sally } from '../support/cli.ts';
import type { Era } from '../support/mcp-client.ts';
import { type HttpMcp, httpClient, mcpProfile } from '../support/mcp-http.ts';
import { stateFolder } from '../support/state-folder.ts';

const connection = { stateDir: stateFolder(), anyEngine: true };

async function onlyBox({ call }: HttpMcp): Promise<string> {
  await call('run', { command: 'true' });
  const { sandboxes } = (await call('sandbox_list', {})).data as { sandboxes: { name: string }[] };
  return sandboxes[0]?.name ?? '';
}

/** A message as it is; what no client of the protocol would send, too. */
async function send(
  { url, token }: McpTokenView,
  body: string,
  headers: Record<string, string> = {},
): Promise<Response> {
  return await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`,
      ...headers,
    },
    body,
  });
}

const initialize = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } },
});

describe('[N5] a client of MCP over HTTP', () => {
  it('gets no sandbox beyond its profile by arguments of other types or by other names', async () => {
    const profile = await mcpProfile('types', ['--memory', '256m']);
    const mcp = await httpClient('2025', profile);
    const before = await Sandbox.list(connection);
    for (const input of [
      { image: ['evil'] },
      { image: { toString: 'evil' } },
      { image: 'evil' },
      { image: '../evil' },
      { memory: ['1t'] },
      { memory: 1e12 },
      { memory: '257m' },
      { memory: '-1' },
      { memory: '1e3g' },
      { cpus: '64' },
      { cpus: 64 },
      { pids: 1e6 },
      { name: ['a'] },
      { name: '../../etc' },
      { name: 'ａｄｍｉｎ' },
      { name: 'A' },
      { workspace: { path: '/' } },
      { mounts: [{ source: '/etc', target: '/x' }] },
      { user: '0:0' },
      { spec: { user: '0:0' } },
    ]) {
      const made = await mcp
        .call('sandbox_create', input)
        .catch((error: Error) => ({ isError: true, text: error.message }));
      expect(made, JSON.stringify(input)).toMatchObject({ isError: true });
    }
    const session = (await send(profile, initialize)).headers.get('mcp-session-id') ?? '';
    const polluted =
      '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sandbox_create","arguments":{"__proto__":{"image":"evil"},"constructor":{"prototype":{"image":"evil"}}}}}';
    expect(await (await send(profile, polluted, { 'mcp-session-id': session })).text()).toContain(
      '"isError":true',
    );
    expect(await Sandbox.list(connection)).toHaveLength(before.length);
    expect((await mcp.call('sandbox_create', { memory: '256m', name: 'allowed' })).isError).toBe(false);
  });

  it('reaches no command of another sandbox, by its id or by a path', async () => {
    const profile = await mcpProfile('paths', ['--max-sessions', '2']);
    const mine = await httpClient('2026', profile, { 'sallyport-session': 'mine' });
    const other = await httpClient('2026', profile, { 'sallyport-session': 'other' });
    const name = await onlyBox(other);
    const started = await other.call('run', { command: 'echo secret; exec sleep 600', background: true });
    const id = String(started.data['exec']);
    expect((await other.call('logs', { exec: id })).isError).toBe(false);
    await onlyBox(mine);
    for (const exec of [
      id,
      `../../${name}/execs/${id}`,
      `..%2f..%2f${name}%2fexecs%2f${id}`,
      `x/../../${name}/execs/${id}?a=`,
      '..',
      '../../../../../../etc/passwd',
      '__proto__',
    ]) {
      for (const tool of ['logs', 'wait', 'kill']) {
        const input = tool === 'wait' ? { exec, timeout_ms: 100 } : { exec };
        const answer = await mine.call(tool, input);
        expect(answer, `${tool} ${exec}`).toMatchObject({ isError: true });
        expect(answer.text).not.toContain('secret');
      }
    }
    expect((await other.call('wait', { exec: id, timeout_ms: 0 })).data).toMatchObject({ state: 'running' });
  });

  it('has no use of its token elsewhere, nor of the token of the API here', async () => {
    const profile = await mcpProfile('elsewhere');
    expect((await send(profile, initialize)).status).toBe(200);
    const { url } = profile;
    const approver = (await readFile(`${stateFolder()}/approver-token`, 'utf8')).trim();
    for (const token of [approver, `${profile.token}x`, profile.token.toUpperCase(), '', 'sallymcp_'])
      expect((await send({ ...profile, token }, initialize)).status, token).toBe(401);
    for (const path of ['/v1/sandboxes', '/mcp/', '/mcp/../v1/sandboxes', '//mcp', '/.sallyport/enter/x'])
      expect((await send({ ...profile, url: url.replace('/mcp', path) }, initialize)).status, path).toBe(404);
    const inQuery = await fetch(`${url}?token=${profile.token}`, { method: 'POST', body: initialize });
    expect(inQuery.status).toBe(401);
  });

  it('begins no session under an id of its own, and a message without an end or a bottom ends nothing', async () => {
    const profile = await mcpProfile('fixed');
    const fixed = await send(profile, initialize, { 'mcp-session-id': 'chosen' });
    expect(fixed.status).toBe(404);
    const began = await send(profile, initialize);
    expect(began.headers.get('mcp-session-id')).toMatch(/^[\w-]{32}$/);
    const session = { 'mcp-session-id': began.headers.get('mcp-session-id') ?? '' };
    const run = (command: string): string =>
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"command":${command}}}}`;
    const deep = `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`;
    for (const body of [deep, run(deep)]) {
      for (const headers of [{}, session]) expect((await send(profile, body, headers)).status).toBe(400);
    }
    // As many bytes that are text.
    const text = await send(profile, run(JSON.stringify(`: ${'['.repeat(100_000)}`)), session);
    expect(await text.text()).toContain('"exit_code":0');
    expect((await send(profile, initialize)).status).toBe(200);
  });

  it.each<Era>(['2025', '2026'])(
    'of %s loses a command that runs in a sandbox that stays when its token is revoked',
    async (era) => {
      const box = `stays-${era}`;
      const profile = await mcpProfile(`revoked-${era}`, ['--name', box]);
      const mcp = await httpClient(era, profile);
      expect((await mcp.call('run', { command: 'mkfifo /tmp/begun' })).isError).toBe(false);
      const running = mcp.call('run', { command: 'echo $$ > /tmp/begun; exec sleep 600' }).catch(() => 'cut');
      const mine = await Sandbox.connect(box, connection);
      const { stdout: pid } = await mine.exec(['cat', '/tmp/begun']);
      expect((await sally(['mcp', 'revoke', `revoked-${era}`])).code).toBe(0);
      const gone = await mine.exec(
        ['sh', '-c', `while kill -0 ${pid.trim()} 2>/dev/null; do :; done; echo gone`],
        { timeoutMs: 20_000 },
      );
      expect(gone.stdout).toBe('gone\n');
      await mcp.close();
      await running;
      await mine.remove({ force: true });
    },
  );

  it('fills no more than its share of the questions that a person is asked', async () => {
    const mcp = await httpClient('2026', await mcpProfile('floods', ['--allow', 'a.example']));
    await onlyBox(mcp);
    const ask = async (at: number) =>
      await mcp.call('request_access', { hosts: [`h${at}.example`], wait_ms: 0 });
    const answers = await Promise.all(Array.from({ length: 30 }, (_, at) => ask(at)));
    expect(answers.filter(({ isError }) => isError)).toHaveLength(20);
    for (const { isError, text } of answers) if (isError) expect(text).toContain('approvals_full');
    const guarded = await sally(['guard', '--approval-timeout', '1ms', '--json', '--', 'rm -rf /']);
    expect(JSON.parse(guarded.stdout)).toMatchObject({
      reason: expect.stringContaining('not answered in time'),
    });
  });
});
