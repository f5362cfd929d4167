/** `sally secret check`: what is known of a token, what its service says of it, and what is refused before a run. */

import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { SandboxAuthority } from '../../src/gate/tls/sandbox-authority.ts';
import { Secrets } from '../../src/sdk/secrets.ts';
import { requireUsableSecrets } from '../../src/sdk/usable-secrets.ts';
import { sally } from '../support/cli.ts';
import { testDns } from '../support/dns-server.ts';

const good = 'good-token-0123456789';

/** A stand-in for an API, which takes one token, and a daemon that finds it by its name and trusts it. */
async function world() {
  const authority = SandboxAuthority.create('the world', new Date());
  const asked: string[] = [];
  const server = createServer(
    { SNICallback: (name, done) => done(null, authority.contextFor(name)) },
    (request, answer) => {
      asked.push(`${request.method} ${request.url}`);
      answer.statusCode = request.headers.authorization === `Bearer ${good}` ? 200 : 401;
      if (request.url === '/broken') answer.statusCode = 500;
      answer.end('{}');
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const dns = await testDns({ 'api.check.test': ['127.0.0.1'] });
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-check-'));
  const stateDir = join(folder, 'state');
  await writeFile(join(folder, 'root.pem'), authority.certificatePem);
  const env = {
    SALLYPORT_STATE_DIR: stateDir,
    SALLYPORT_DNS_SERVERS: dns.server,
    SALLYPORT_EXTRA_CA_CERTS: join(folder, 'root.pem'),
  };
  onTestFinished(async () => {
    await sally(['daemon', 'stop'], { env });
    server.close();
    server.closeAllConnections();
    await rm(folder, { recursive: true, force: true });
  });
  const { port } = server.address() as AddressInfo;
  const set = async (name: string, flags: readonly string[], input = ''): Promise<void> => {
    const binding = [
      '--host',
      'api.check.test',
      '--port',
      String(port),
      '--header',
      'authorization: Bearer {}',
    ];
    const made = await sally(['secret', 'set', name, ...binding, ...flags], { env, input });
    expect([made.code, made.stderr]).toEqual([0, expect.stringContaining('is set')]);
  };
  const check = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await sally(['secret', 'check', ...args, '--json'], { env });
    return { code, stderr, checks: JSON.parse(stdout) as { name: string; state: string; message: string }[] };
  };
  return { folder, stateDir, env, asked, set, check };
}

const webToken = (exp: number): string =>
  ['{"alg":"none"}', JSON.stringify({ exp }), 'signature']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.');
const hourFromNow = Math.floor(Date.now() / 1000) + 3600;

describe('[R8] sally secret check', () => {
  it('says what is known of a token, and asks its service where it is told to', async () => {
    const { asked, set, check } = await world();
    const path = ['--check-path', '/v1/models'];
    await set('good', path, good);
    await set('refused', path, 'other-token-0123456789');
    await set('broken', ['--check-path', '/broken'], good);
    await set('unasked', [], good);
    await set('soon', path, webToken(hourFromNow));
    await set('over', path, webToken(1_000_000));
    const known = await check();
    expect(known.code).toBe(1);
    expect(known.checks.map(({ name, state }) => `${name} ${state}`)).toEqual([
      'broken valid',
      'good valid',
      'over expired',
      'refused valid',
      'soon expiring',
      'unasked valid',
    ]);
    expect(asked).toEqual([]);
    const told = await check('good', 'refused', 'broken', 'unasked', 'over', '--ask');
    expect(told.checks.map(({ state }) => state)).toEqual(['valid', 'expired', 'valid', 'valid', 'expired']);
    expect(told.checks[0]?.message).toContain('api.check.test takes it');
    expect(told.checks[1]?.message).toContain('set a new one with `sally secret set refused`');
    expect(told.checks[2]?.message).toContain('could not be asked: it answers with status 500');
    expect(asked.sort()).toEqual(['GET /broken', 'GET /v1/models', 'GET /v1/models']);
    expect((await check('good', '--ask')).code).toBe(0);
  });

  it('checks the token of an agent, and says how to set one that is missing', async () => {
    const { asked, set, check } = await world();
    const missing = await check('claude');
    expect(missing).toMatchObject({ code: 1, checks: [{ name: 'anthropic', state: 'missing' }] });
    expect(missing.checks[0]?.message).toContain('sally secret set anthropic');
    await set('openai', ['--check-path', '/v1/models'], good);
    expect(await check('codex')).toMatchObject({ code: 0, checks: [{ name: 'openai', state: 'valid' }] });
    expect(asked).toEqual(['GET /v1/models']);
    expect((await check('codex', '--offline')).code).toBe(0);
    expect(asked).toHaveLength(1);
  });

  it('runs the command of a secret again where what it printed is refused by now', async () => {
    const { folder, set, check } = await world();
    const file = join(folder, 'token');
    await writeFile(file, 'old-token-0123456789\n');
    await set('renewed', ['--check-path', '/v1', '--ttl', '1h', '--command', 'cat', file]);
    expect((await check('renewed', '--ask')).checks[0]?.message).toContain('log in there again');
    await writeFile(file, `${good}\n`);
    expect(await check('renewed', '--ask')).toMatchObject({ code: 0, checks: [{ state: 'valid' }] });
  });

  it('refuses a run before it begins, with what is wrong and what to do', async () => {
    const { stateDir, set } = await world();
    await set('good', ['--check-path', '/v1'], good);
    await set('refused', ['--check-path', '/v1'], 'other-token-0123456789');
    await set('soon', [], webToken(hourFromNow));
    const secrets = new Secrets({ stateDir, anyEngine: true, startDaemon: false });
    onTestFinished(() => secrets.disconnect());
    const warned: string[] = [];
    const warn = ({ name }: { readonly name: string }): void => void warned.push(name);
    await requireUsableSecrets(secrets, ['good', 'soon'], { ask: true, warn });
    expect(warned).toEqual(['soon']);
    await expect(
      requireUsableSecrets(secrets, ['good', 'refused', 'absent'], { agent: 'claude', ask: true }),
    ).rejects.toMatchObject({
      code: 'secret_unusable',
      message: expect.stringMatching(/claude was not started: .*refused is expired.*absent is missing/),
    });
  });

  it('keeps `--each` from beginning where the service refuses the token, by one question, and not past an upstream', async () => {
    const { env, folder, asked, set } = await world();
    await set('refused', ['--check-path', '/v1/models'], 'other-token-0123456789');
    await mkdir(join(folder, 'sallyport/agents/needy'), { recursive: true });
    await writeFile(
      join(folder, 'sallyport/agents/needy/agent.yaml'),
      `command: [sh, -c]\nheadless: ['{prompt}']\nimage: ${inject('engine').image}\ncredentials: [{ one_of: [refused] }]\n`,
    );
    await writeFile(join(folder, 'tasks.txt'), 'echo one\necho two\n');
    const each = (...flags: readonly string[]) =>
      sally(['agent', 'needy', '--each', 'tasks.txt', ...flags], {
        env: { ...env, XDG_CONFIG_HOME: folder },
        cwd: folder,
      });
    const told = await each();
    expect([told.code, told.stdout, told.stderr]).toEqual([
      125,
      '',
      expect.stringMatching(
        /needy was not started: the secret refused is expired[\s\S]*sally secret set refused/,
      ),
    ]);
    expect(asked).toEqual(['GET /v1/models']);
    expect((await sally(['ls', '--json'], { env })).stdout).toContain('"sandboxes": []');
    // What it comes to next is that nothing may work on this folder.
    const past = await each('--upstream', 'http://127.0.0.1:1');
    expect([past.code, past.stderr]).toEqual([1, expect.stringContaining('0 done, 2 failed')]);
    expect(asked).toHaveLength(1);
  });
});
