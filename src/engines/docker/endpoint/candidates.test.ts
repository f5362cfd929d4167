import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../../../test/support/little-engine.ts';
import type { EngineEnvironment } from '../config.ts';
import { engineCandidates, knownSockets } from './candidates.ts';
import { describeEndpoint } from './endpoint.ts';

function environment(more: Partial<EngineEnvironment> = {}): EngineEnvironment {
  return {
    platform: 'linux',
    home: '/home/me',
    uid: 1000,
    dockerConfigDir: '/nowhere/.docker',
    dockerTlsVerify: false,
    ...more,
  };
}

function configWithContext(name: string, host: string): string {
  const config = temporaryFolder();
  const folder = join(config, 'contexts/meta', createHash('sha256').update(name).digest('hex'));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'meta.json'), JSON.stringify({ Endpoints: { docker: { Host: host } } }));
  writeFileSync(join(config, 'config.json'), JSON.stringify({ currentContext: name }));
  return config;
}

async function listed(env: EngineEnvironment, privateSocket?: string): Promise<readonly string[]> {
  const candidates = await engineCandidates(env, privateSocket);
  return candidates.map(({ source, exclusive, endpoint }) => {
    const where = endpoint instanceof Error ? endpoint.code : describeEndpoint(endpoint);
    return `${source} ${where}${exclusive ? ' only' : ''}`;
  });
}

describe('the engine of the sandboxes here', () => {
  it('[G3] is looked for before the other places, and after a context', async () => {
    const path = '/run/podman/podman.sock';
    const places = await listed(environment({ holder: path }));
    expect(places[0]).toBe(`engine of the sandboxes here unix://${path}`);
    expect(places[1]).toBe('default socket unix:///var/run/docker.sock');
    expect(places.filter((place) => place.includes(path))).toHaveLength(1);
    const dockerConfigDir = configWithContext('build', 'ssh://build');
    expect((await listed(environment({ holder: path, dockerConfigDir }))).slice(0, 2)).toEqual([
      'docker context "build" ssh://build only',
      `engine of the sandboxes here unix://${path}`,
    ]);
  });

  it('[G3] is not looked for where a person names an engine', async () => {
    const named = environment({ holder: '/a.sock', dockerHost: 'unix:///b.sock' });
    expect(await listed(named)).toEqual(['DOCKER_HOST unix:///b.sock only']);
  });
});

describe('the current context', () => {
  it('[G3] is the one that the client read, whatever the settings say by then', async () => {
    const dockerConfigDir = configWithContext('build', 'ssh://build');
    const [first] = await listed(environment({ dockerConfigDir, currentContext: 'default' }));
    expect(first).toBe('default socket unix:///var/run/docker.sock');
    const [gone] = await listed(environment({ dockerConfigDir, currentContext: 'other' }));
    expect(gone).toBe('docker context "other" engine_endpoint_invalid only');
    const [build] = await listed(environment({ dockerConfigDir, currentContext: 'build' }));
    expect(build).toBe('docker context "build" ssh://build only');
  });
});

describe('knownSockets', () => {
  it('[G3] looks at the places of Linux in the documented order, the private engine last', () => {
    expect(knownSockets(environment(), '/run/sallyport/engine/docker.sock')).toEqual([
      { source: 'default socket', path: '/var/run/docker.sock' },
      { source: 'Docker Desktop', path: '/home/me/.docker/run/docker.sock' },
      { source: 'Docker Desktop for Linux', path: '/home/me/.docker/desktop/docker.sock' },
      { source: 'OrbStack', path: '/home/me/.orbstack/run/docker.sock' },
      { source: 'colima', path: '/home/me/.colima/default/docker.sock' },
      { source: 'colima', path: '/home/me/.config/colima/default/docker.sock' },
      { source: 'rootless Docker', path: '/run/user/1000/docker.sock' },
      { source: 'rootless Podman', path: '/run/user/1000/podman/podman.sock' },
      { source: 'Podman', path: '/run/podman/podman.sock' },
      { source: 'Podman machine', path: '/home/me/.local/share/containers/podman/machine/podman.sock' },
      { source: "Sallyport's private engine", path: '/run/sallyport/engine/docker.sock' },
    ]);
  });

  it('[G3] does not look below /run/user on macOS', () => {
    const paths = knownSockets(environment({ platform: 'darwin', home: '/Users/me', uid: 501 })).map(
      ({ path }) => path,
    );
    expect(paths).toEqual([
      '/var/run/docker.sock',
      '/Users/me/.docker/run/docker.sock',
      '/Users/me/.docker/desktop/docker.sock',
      '/Users/me/.orbstack/run/docker.sock',
      '/Users/me/.colima/default/docker.sock',
      '/Users/me/.config/colima/default/docker.sock',
      '/run/podman/podman.sock',
      '/Users/me/.local/share/containers/podman/machine/podman.sock',
    ]);
  });

  it('[G3] follows XDG_RUNTIME_DIR, XDG_CONFIG_HOME and COLIMA_HOME, each place once', () => {
    const paths = knownSockets(
      environment({ xdgRuntimeDir: '/rt', xdgConfigHome: '/cfg', colimaHome: '/home/me/.colima' }),
    ).map(({ path }) => path);
    expect(paths).toContain('/rt/docker.sock');
    expect(paths).toContain('/rt/podman/podman.sock');
    expect(paths.filter((path) => path.includes('colima'))).toEqual([
      '/home/me/.colima/default/docker.sock',
      '/cfg/colima/default/docker.sock',
    ]);
  });
});

describe('engineCandidates', () => {
  it('[G3] tries nothing but DOCKER_HOST when it is set', async () => {
    const dockerConfigDir = configWithContext('remote', 'tcp://h:2375');
    const env = environment({ dockerHost: 'unix:///x.sock', dockerContext: 'remote', dockerConfigDir });
    expect(await listed(env)).toEqual(['DOCKER_HOST unix:///x.sock only']);
  });

  it('[G3] does not fall back from a DOCKER_HOST that is no address', async () => {
    expect(await listed(environment({ dockerHost: 'oops' }))).toEqual([
      'DOCKER_HOST engine_endpoint_invalid only',
    ]);
  });

  it('[G3] tries nothing but the context that DOCKER_CONTEXT names', async () => {
    const dockerConfigDir = configWithContext('remote', 'ssh://me@h');
    expect(await listed(environment({ dockerContext: 'remote', dockerConfigDir }))).toEqual([
      'DOCKER_CONTEXT=remote ssh://me@h only',
    ]);
    expect(await listed(environment({ dockerContext: 'absent', dockerConfigDir }))).toEqual([
      'DOCKER_CONTEXT=absent engine_endpoint_invalid only',
    ]);
  });

  it('[G3] DOCKER_CONTEXT=default means the local places, whatever the current context is', async () => {
    const dockerConfigDir = configWithContext('remote', 'tcp://h:2375');
    const [first] = await listed(environment({ dockerContext: 'default', dockerConfigDir }));
    expect(first).toBe('default socket unix:///var/run/docker.sock');
  });

  it('[G3] puts a current context on a local socket first and goes on after it', async () => {
    const dockerConfigDir = configWithContext('orbstack', 'unix:///o.sock');
    const rows = await listed(environment({ dockerConfigDir }), '/private.sock');
    expect(rows[0]).toBe('docker context "orbstack" unix:///o.sock');
    expect(rows[1]).toBe('default socket unix:///var/run/docker.sock');
    expect(rows.at(-1)).toBe("Sallyport's private engine unix:///private.sock");
  });

  it('[G3] a remote current context is exclusive', async () => {
    const dockerConfigDir = configWithContext('remote', 'tcp://h:2375');
    const candidates = await engineCandidates(environment({ dockerConfigDir }));
    expect(candidates[0]).toMatchObject({ source: 'docker context "remote"', exclusive: true });
  });

  it('[G3] DOCKER_TLS_VERIFY wants the CA, and sends a client certificate where there is one', async () => {
    const dockerCertPath = temporaryFolder();
    const env = environment({ dockerHost: 'tcp://h', dockerTlsVerify: true, dockerCertPath });
    expect((await engineCandidates(env))[0]?.endpoint).toEqual({
      kind: 'tcp',
      host: 'h',
      port: 2376,
      tls: { caPath: join(dockerCertPath, 'ca.pem'), skipVerify: false },
    });
    writeFileSync(join(dockerCertPath, 'cert.pem'), '');
    expect((await engineCandidates(env))[0]?.endpoint).toMatchObject({
      tls: { certPath: join(dockerCertPath, 'cert.pem'), keyPath: join(dockerCertPath, 'key.pem') },
    });
  });
});
