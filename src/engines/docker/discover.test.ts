import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { pingServer, rawServer, temporaryFolder } from '../../../test/support/little-engine.ts';
import type { EngineEnvironment } from './config.ts';
import { discoverEngine, findEngine } from './discover.ts';

/** A home in which every well-known place is below a folder of this test. (The machine's own places come first in life.) */
function environment(more: Partial<EngineEnvironment> = {}): EngineEnvironment {
  const home = temporaryFolder();
  return {
    platform: 'linux',
    home,
    uid: 1000,
    dockerConfigDir: join(home, '.docker'),
    dockerTlsVerify: false,
    xdgRuntimeDir: join(home, 'run'),
    ...more,
  };
}

function useContext(env: EngineEnvironment, name: string, host: string): void {
  const folder = join(env.dockerConfigDir, 'contexts/meta', createHash('sha256').update(name).digest('hex'));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'meta.json'), JSON.stringify({ Endpoints: { docker: { Host: host } } }));
  writeFileSync(join(env.dockerConfigDir, 'config.json'), JSON.stringify({ currentContext: name }));
}

/** A socket file whose server is gone: what a Docker Desktop that was quit leaves behind. */
async function staleSocket(path: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  const { spawnSync } = await import('node:child_process');
  const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
  spawnSync(process.execPath, ['-e', script]);
}

async function liveSocket(path: string, apiVersion = '1.41'): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  await pingServer(apiVersion, path);
}

describe('discoverEngine', () => {
  it('[G3] a stale socket that does not answer loses to one that answers', async () => {
    const env = environment();
    const stale = join(env.home, 'stale.sock');
    const live = join(env.home, '.orbstack/run/docker.sock');
    await staleSocket(stale);
    useContext(env, 'desktop', `unix://${stale}`);
    await liveSocket(live);
    const { found, attempts } = await discoverEngine(env);
    expect(attempts[0]).toMatchObject({
      source: 'docker context "desktop"',
      outcome: 'failed',
      error: { code: 'engine_unreachable', message: expect.stringContaining('connection refused') },
    });
    // A machine with an engine at the default place finds that one before OrbStack's.
    expect(found?.source).not.toBe('docker context "desktop"');
    expect(attempts.at(-1)).toMatchObject({ outcome: 'answered', source: found?.source });
  });

  it('[G3] the first that answers wins, and the trace says which', async () => {
    const env = environment();
    const live = join(env.home, 'mine.sock');
    await liveSocket(live);
    useContext(env, 'mine', `unix://${live}`);
    await liveSocket(join(env.home, '.orbstack/run/docker.sock'));
    const { found, attempts } = await discoverEngine(env);
    expect(found).toMatchObject({ source: 'docker context "mine"', endpoint: { path: live } });
    expect(attempts).toHaveLength(1);
  });

  it('[G3] DOCKER_HOST is exclusive: nothing else is tried when it does not answer', async () => {
    const env = environment({ dockerHost: 'unix:///nowhere/docker.sock' });
    await liveSocket(join(env.home, '.orbstack/run/docker.sock'));
    const { found, attempts } = await discoverEngine(env);
    expect(found).toBeUndefined();
    expect(attempts).toHaveLength(1);
    await expect(findEngine(env)).rejects.toMatchObject({
      code: 'engine_unreachable',
      message: expect.stringContaining('unix:///nowhere/docker.sock: there is no socket'),
    });
  });

  it('[G3] a remote current context is exclusive: code does not move to another machine', async () => {
    const env = environment();
    const server = net.createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as net.AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    useContext(env, 'remote', `tcp://127.0.0.1:${port}`);
    await liveSocket(join(env.home, '.orbstack/run/docker.sock'));
    const { found, attempts } = await discoverEngine(env);
    expect(found).toBeUndefined();
    expect(attempts).toMatchObject([
      { source: 'docker context "remote"', error: { code: 'engine_unreachable' } },
    ]);
  });

  it.each(['oops', 'docker.sock', 'tcp://', 'unix://x', 'npipe:////./pipe/x'])(
    '[G3] a wrong DOCKER_HOST (%s) is an error of its own',
    async (dockerHost) => {
      await expect(findEngine(environment({ dockerHost }))).rejects.toMatchObject({
        code: 'engine_endpoint_invalid',
        message: expect.stringContaining(JSON.stringify(dockerHost)),
      });
    },
  );

  it('[G3] a half-dead engine costs seconds, not for ever', async () => {
    const path = await rawServer(() => {});
    const started = performance.now();
    await expect(findEngine(environment({ dockerHost: `unix://${path}` }))).rejects.toMatchObject({
      code: 'engine_timeout',
    });
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  it('[G3] of many failures the one that tells most is reported', async () => {
    const env = environment();
    const old = join(env.home, 'old.sock');
    await liveSocket(old, '1.40');
    useContext(env, 'old', `unix://${old}`);
    const { attempts } = await discoverEngine(env);
    const { discoveryError } = await import('./discover.ts');
    const failed = attempts.filter(({ outcome }) => outcome === 'failed');
    expect(discoveryError(failed)).toMatchObject({ code: 'engine_too_old' });
    expect(discoveryError([])).toMatchObject({ code: 'engine_unreachable' });
  });

  it('is cancelled by its signal, also while an engine does not answer', async () => {
    const controller = new AbortController();
    const path = await rawServer(() => controller.abort());
    const env = environment({ dockerHost: `unix://${path}` });
    await expect(discoverEngine(env, { signal: controller.signal })).rejects.toMatchObject({
      code: 'cancelled',
    });
    await expect(discoverEngine(env, { signal: controller.signal })).rejects.toMatchObject({
      code: 'cancelled',
    });
  });
});
