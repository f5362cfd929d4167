/** The network of a sandbox as people use it: flags, `sally net`, the words at the end of a command, the SDK, learning. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { sally, startSally } from '../support/cli.ts';
import { testDaemon } from '../support/daemon.ts';
import { testDns } from '../support/dns-server.ts';
import { helloServer } from '../support/gate-box.ts';

const get = (host: string, port: number): string => `
import socket
sock = socket.create_connection(('127.0.0.1', 3128))
sock.sendall(b'GET http://${host}:${port}/ HTTP/1.1\\r\\nHost: ${host}:${port}\\r\\nConnection: close\\r\\n\\r\\n')
print(sock.makefile('rb').read().decode().split('\\r\\n\\r\\n', 1)[1])
`;

/** A daemon of the test's own, whose gate asks the test's own resolver. */
async function world(names: Readonly<Record<string, readonly string[]>>) {
  const dns = await testDns(names);
  const daemon = await testDaemon({ SALLYPORT_DNS_SERVERS: dns.server });
  await daemon.health();
  return { daemon, dns, env: { SALLYPORT_STATE_DIR: daemon.stateDir } };
}

describe('[R6] sally net', () => {
  it('shows what was denied, allows it at once, and keeps a log of every decision', async () => {
    const { port } = await helloServer();
    const { env } = await world({ 'good.test': ['127.0.0.1'] });
    const image = inject('engine').image;
    const made = await sally(['create', '--image', image, '--name', 'net', '--allow', `127.0.0.1:${port}`], {
      env,
    });
    expect(made.code, made.stderr).toBe(0);
    const ask = ['exec', 'net', 'python3', '-c', get('good.test', port)];
    const denied = await sally(ask, { env });
    expect(denied.code).toBe(0);
    expect(JSON.parse(denied.stdout)).toEqual({
      error: {
        code: 'not_allowed',
        host: 'good.test',
        port,
        message: 'no rule allows good.test',
        allow: `sally net allow net good.test:${port}`,
      },
    });
    expect(denied.stderr).toContain(
      `1 host denied:\nsally:   good.test:${port} ×1 → sally net allow net good.test:${port}`,
    );
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-net-'));
    onTestFinished(async () => await rm(folder, { recursive: true, force: true }));
    const follower = startSally(['net', 'log', 'net', '-f', '--json'], { env });
    await follower.said('"allowed":false');
    const allow = await sally(['net', 'allow', 'net', `good.test:${port}`, '--save'], { env, cwd: folder });
    expect(allow.code, allow.stderr).toBe(0);
    expect(await readFile(join(folder, 'sallyport.yaml'), 'utf8')).toBe(
      `egress:\n  allow:\n    - good.test:${port}\n`,
    );
    const reached = await sally(ask, { env });
    expect({ stdout: reached.stdout, stderr: reached.stderr }).toEqual({
      stdout: 'hello from the test\n',
      stderr: '',
    });
    await follower.said('"allowed":true');
    follower.child.kill('SIGINT');
    const lines = (await follower.result).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { bytes_in: number });
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatchObject({
      host: 'good.test',
      port,
      method: 'GET',
      rule: `good.test:${port}`,
      status: 200,
    });
    expect(lines[1]?.bytes_in).toBeGreaterThan(0);
    const list = await sally(['net', 'ls', 'net'], { env });
    expect(list.stdout).toContain(`allow     127.0.0.1:${port} good.test:${port}`);
    const wrong = await sally(['net', 'allow', 'net', '*.co.uk'], { env });
    expect({ code: wrong.code, stderr: wrong.stderr }).toMatchObject({ code: 2 });
    expect(wrong.stderr).toContain('names of anybody');
    await sally(['create', '--image', image, '--name', 'closed'], { env });
    const closed = await sally(['net', 'ls', 'closed'], { env });
    expect(closed.stderr).toContain('was made without egress');
  });

  it('learns what a command reaches, keeps private places closed, and prints the rules for it', async () => {
    const { port } = await helloServer();
    const { daemon } = await world({ 'good.test': ['127.0.0.1'], 'inside.test': ['10.0.0.1'] });
    const box = await daemon.make({
      egress: { mode: 'learn', allow: [`127.0.0.1:${port}`], deny: ['bad.test'] },
    });
    const run = async (host: string): Promise<string> =>
      (await box.exec(['python3', '-c', get(host, port)])).stdout.trim();
    expect(await run('good.test')).toBe('hello from the test');
    expect(await run('inside.test')).toContain('private_address');
    expect(await run('bad.test')).toContain('denied_by_rule');
    const info = await box.net.info();
    expect(info.reached).toEqual([`good.test:${port}`]);
    expect(info.denied.map(({ host }) => host)).toEqual(['inside.test', 'bad.test']);
    await box.net.deny('good.test');
    expect(await run('good.test')).toContain('denied_by_rule');
    const decisions: boolean[] = [];
    for await (const { allowed } of box.net.log()) decisions.push(allowed);
    expect(decisions).toEqual([true, false, false, false]);
    const verified = await box.verify();
    expect(
      verified.checks.filter(({ name }) => /gate|names|resolver/.test(name)).map(({ status }) => status),
    ).toEqual(['ok', 'ok', 'ok']);
    expect((await box.net.info()).deny).toEqual(['bad.test', 'good.test']);
  });
});
