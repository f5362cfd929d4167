/** The daemon as a process: started on demand, alone on its folder, ended in good order or not. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { DaemonClient } from '../../src/sdk/client.ts';
import { testDaemon } from '../support/daemon.ts';
import { testEngine } from '../support/engine.ts';
import { ask } from '../support/little-daemon.ts';
import { until } from '../support/until.ts';

const entry = join(packageInfo().root, 'dist/daemon/main.js');

describe('the daemon', () => {
  it('is started by the first call, by many at once only one, and keeps its files to its user', async () => {
    const { client, stateDir, health, connect } = await testDaemon();
    const others = Array.from({ length: 4 }, () => connect());
    const all = [client, ...others];
    const answers = await Promise.all(all.map((one) => one.json<{ pid: number }>('GET', '/v1/health')));
    expect(new Set(answers.map(({ pid }) => pid)).size).toBe(1);
    for (const one of others) one.close();
    expect((await stat(stateDir)).mode & 0o777).toBe(0o700);
    for (const name of ['daemon.sock', 'daemon.log', 'daemon.lock']) {
      expect((await stat(join(stateDir, name))).mode & 0o777, name).toBe(0o600);
    }
    expect(await health()).toMatchObject({ version: packageInfo().version, engine: { reachable: true } });
  });

  it('says why it cannot start, with the code of the reason', async () => {
    const { client } = await testDaemon({ DOCKER_HOST: 'unix:///nowhere.sock' });
    await expect(client.json('GET', '/v1/sandboxes')).rejects.toMatchObject({ code: 'engine_unreachable' });
  });

  it('refuses a state folder whose socket would have too long a path, and says what to set', async () => {
    const { stateDir } = await testDaemon();
    const long = join(stateDir, 'x'.repeat(100));
    const client = new DaemonClient({ stateDir: long });
    await expect(client.json('GET', '/v1/sandboxes')).rejects.toMatchObject({
      code: 'socket_path_too_long',
      advice: expect.stringContaining('SALLYPORT_STATE_DIR'),
    });
    client.close();
  });

  it('is not used by a client whose variables name another engine', async () => {
    const { stateDir, client } = await testDaemon();
    await client.json('GET', '/v1/sandboxes');
    const before = process.env['DOCKER_HOST'];
    process.env['DOCKER_HOST'] = 'unix:///another.sock';
    const other = new DaemonClient({ stateDir });
    if (before === undefined) delete process.env['DOCKER_HOST'];
    else process.env['DOCKER_HOST'] = before;
    await expect(other.json('GET', '/v1/sandboxes')).rejects.toMatchObject({ code: 'engine_unreachable' });
    other.close();
  });

  it('stops its sandboxes and itself when asked, or keeps them running', async () => {
    const { make, client, containers, health } = await testDaemon();
    const box = await make();
    const { pid } = await health();
    await client.shutdown({ keep: true });
    expect(await containers()).toBe(1);
    expect((await box.refresh()).state).toBe('READY');
    expect((await health()).pid).not.toBe(pid);
    await client.shutdown();
    expect((await box.refresh()).state).toBe('STOPPED');
    await box.remove();
    expect(await containers()).toBe(0);
  });

  it('stops in good order on SIGTERM', async () => {
    const { make, health, log, client } = await testDaemon();
    const box = await make();
    const { pid } = await health();
    process.kill(pid, 'SIGTERM');
    await until(async () => (await log()).includes('the daemon has stopped'));
    expect((await box.refresh()).state).toBe('STOPPED');
    expect((await client.json<{ pid: number }>('GET', '/v1/health')).pid).not.toBe(pid);
    await box.remove();
  });

  it('stops by itself when it is idle and empty', async () => {
    const { client, log } = await testDaemon({ SALLYPORT_DAEMON_IDLE: '300ms' });
    await client.json('GET', '/v1/sandboxes');
    await until(async () => (await log()).includes('the daemon has stopped'));
    expect(await log()).toContain('nobody needs this daemon');
  });

  it('dies at the point that a test names, and not before', async () => {
    const { client, stateDir, containers } = await testDaemon({ SALLYPORT_CRASH_AT: 'create.accepted:1' });
    const body = { spec: { image: testEngine().image } };
    await expect(client.json('POST', '/v1/sandboxes', { body })).rejects.toMatchObject({
      code: 'daemon_gone',
    });
    const next = new DaemonClient({ stateDir, anyEngine: true });
    const { sandboxes } = await next.json<{ sandboxes: { state: string; id: string }[] }>(
      'GET',
      '/v1/sandboxes',
    );
    expect(sandboxes).toMatchObject([{ state: 'FAILED' }]);
    expect(await containers()).toBe(0);
    next.close();
  });

  it('listens on a port only if asked, on the loopback, and with the token', async () => {
    const { stateDir, log } = await testDaemon();
    await mkdir(stateDir, { recursive: true, mode: 0o700 });
    const start = (...args: string[]) =>
      spawn(process.execPath, [entry, ...args], {
        stdio: ['ignore', 'ignore', 'pipe'],
        env: {
          PATH: process.env['PATH'],
          HOME: process.env['HOME'],
          DOCKER_HOST: testEngine().endpoint,
          SALLYPORT_STATE_DIR: stateDir,
        },
      });
    const refused = start('--listen', '0.0.0.0:0');
    let said = '';
    refused.stderr.on('data', (chunk) => {
      said += String(chunk);
    });
    await once(refused, 'close');
    expect(said).toContain('listen_refused');
    const child = start('--listen', '127.0.0.1:0');
    await until(async () => /listens on a port/.test(await log().catch(() => '')));
    const port = Number(/"port":(\d+)/.exec(await log())?.[1]);
    const token = (await readFile(join(stateDir, 'token'), 'utf8')).trim();
    const where = { host: '127.0.0.1', port };
    expect((await ask(where, 'GET', '/v1/health')).status).toBe(401);
    const headers = { authorization: `Bearer ${token}` };
    expect((await ask(where, 'GET', '/v1/health', { headers })).status).toBe(200);
    expect((await stat(join(stateDir, 'token'))).mode & 0o777).toBe(0o600);
    expect(await log()).not.toContain(token);
    child.kill('SIGTERM');
    await once(child, 'exit');
  });

  it('takes the place of an older one, whose sandboxes go on', async () => {
    const { make, client, connect, health } = await testDaemon();
    const box = await make();
    const running = await box.spawn(['sleep', '60'], { background: true });
    const { pid } = await health();
    const newer = connect({ anyEngine: true, version: '99.0.0' });
    // The one that it starts has this package's version as well, so it is refused in the end, but by another process.
    await expect(newer.json('GET', '/v1/sandboxes')).rejects.toMatchObject({ code: 'daemon_outdated' });
    newer.close();
    expect((await health()).pid).not.toBe(pid);
    expect(await box.execs()).toMatchObject([{ id: running.id, state: 'running' }]);
    const older = connect({ anyEngine: true, version: '0.0.1' });
    await expect(older.json('GET', '/v1/sandboxes')).rejects.toMatchObject({ code: 'client_outdated' });
    older.close();
    running.disconnect();
    await box.remove();
    expect(await client.json('GET', '/v1/sandboxes')).toMatchObject({ sandboxes: [] });
  });
});
