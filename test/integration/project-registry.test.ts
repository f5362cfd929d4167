/** Bases from a real registry: pulled with progress, asked for again when it is time, with the user's own login, and when it dies. */

import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { EngineBoxImages } from '../../src/images/box-images.ts';
import { RegistryCredentials } from '../../src/images/registry-credentials.ts';
import { type ProgressEvent, silent } from '../../src/lib/progress.ts';
import { makeImageHere } from '../../src/setup/images.ts';
import { newFolder } from '../support/cli.ts';
import { testEngine } from '../support/engine.ts';
import { newBase, newProject, projectImages, resolveApproved } from '../support/projects.ts';
import { push, type Registry, type RegistryOptions, startRegistry } from './images-registry.ts';

const { connection, endpoint, image } = testEngine();
const engine = dockerImageEngine(connection);
const socketPath = endpoint.replace('unix://', '');
const day = 24 * 3600_000;

async function registry(options: RegistryOptions = {}): Promise<Registry> {
  const started = await startRegistry(options);
  let stopped = false;
  const stop = async (): Promise<void> => {
    if (stopped) return;
    stopped = true;
    await started.stop();
  };
  onTestFinished(stop);
  return { ...started, stop };
}

/** Puts an image there under this name, and takes the name away from the engine. */
async function publish(
  source: string,
  repository: string,
  login: Record<string, string> = {},
): Promise<void> {
  await engine.tag(source, repository, 'latest');
  await push(socketPath, repository, 'latest', login);
  await engine.remove(`${repository}:latest`);
  onTestFinished(() => engine.remove(`${repository}:latest`));
}

describe('a base in a registry', () => {
  it('[R3] [C6] is pulled on first use, asked for after 7 days by our own record, and a new digest is a new image', async () => {
    const { host, stop } = await registry({ container: { endpoint, image } });
    const repository = `${host}/base`;
    const [one, two] = [await newBase(), await newBase('RUN echo two > /two')];
    await publish(one.reference, repository);
    const folder = await newProject({ 'Dockerfile.sallyport': `FROM ${repository}\nENV A=1\n` });
    let nowMs = Date.parse('2026-01-01T00:00:00Z');
    const images = await projectImages({ now: () => new Date(nowMs) });
    const events: ProgressEvent[] = [];
    const pulls = (): number => events.filter(({ message }) => message.startsWith('asking for')).length;
    const first = await resolveApproved(images, folder, { events });
    expect(events.some(({ step, message }) => step === 'pull' && message.includes('Digest: sha256:'))).toBe(
      true,
    );
    expect(pulls()).toBe(1);

    // Somebody pushes another; nobody asks before the week is over.
    await engine.tag(two.reference, `${host}/other`, 'latest');
    await push(socketPath, `${host}/other`, 'latest');
    await republish(`${host}/other`, repository);
    nowMs += 6 * day;
    expect(await resolveApproved(images, folder, { events })).toMatchObject({ how: 'present', id: first.id });
    expect(pulls()).toBe(1);
    nowMs += 2 * day;
    const second = await resolveApproved(images, folder, { events });
    expect(pulls()).toBe(2);
    expect(second).toMatchObject({ how: 'built' });
    expect(second.fingerprint).not.toBe(first.fingerprint);

    // Offline it is a warning, once an hour at most, and what is there is used.
    await stop();
    nowMs += 8 * day;
    const notes: string[] = [];
    expect(await resolveApproved(images, folder, { events, notes })).toMatchObject({
      how: 'present',
      id: second.id,
    });
    expect(notes).toEqual(['base_not_checked']);
    nowMs += 60_000;
    await resolveApproved(images, folder, { events, notes });
    expect(notes).toHaveLength(1);
    expect(pulls()).toBe(3);
    // --rebuild asks in any case, and builds in any case.
    const third = await resolveApproved(images, folder, { events, notes, rebuild: true });
    expect(third).toMatchObject({ how: 'built', reference: second.reference });
    expect(third.id).not.toBe(second.id);
    expect(pulls()).toBe(4);
    await engine.remove(second.id);
  });

  /** The same name for what another has. */
  async function republish(from: string, to: string): Promise<void> {
    const before = await engine.find(`${to}:latest`);
    await engine.tag(`${from}:latest`, to, 'latest');
    await push(socketPath, to, 'latest');
    await engine.tag(before?.id ?? '', to, 'latest');
    await engine.remove(`${from}:latest`);
  }
});

const htpasswd = 'w2:$2b$05$h7hX8z7fPABiyPFiFCexPukolFZkmFC9.uzsnXZR24y.0a/ByACxy';
const login = { username: 'w2', password: 'w2-secret' };

describe('a registry that wants a login', () => {
  it('[C6] gets the one of the user’s docker, from its file or from a helper', async () => {
    const { host } = await registry({ htpasswd });
    const base = await newBase();
    await publish(base.reference, `${host}/private`, login);
    const config = await newFolder('own');
    const images = new EngineBoxImages(engine, { credentials: new RegistryCredentials(config) });
    const provide = async (): Promise<void> => {
      await images.provide({ image: `${host}/private` }, { progress: silent });
      await engine.remove(`${host}/private:latest`);
    };
    await expect(provide()).rejects.toMatchObject({ code: 'image_pull_failed' });

    const auth = Buffer.from(`${login.username}:${login.password}`).toString('base64');
    await writeFile(join(config, 'config.json'), JSON.stringify({ auths: { [host]: { auth } } }));
    await provide();

    const bin = join(config, 'bin');
    await mkdir(bin);
    const helper = join(bin, 'docker-credential-w2');
    const answer = JSON.stringify({ ServerURL: host, Username: login.username, Secret: login.password });
    await writeFile(
      helper,
      `#!/bin/sh\nread server\ntest "$1 $server" = "get ${host}" && echo '${answer}'\n`,
    );
    await chmod(helper, 0o755);
    vi.stubEnv('PATH', `${bin}:${process.env['PATH']}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    await writeFile(join(config, 'config.json'), JSON.stringify({ credHelpers: { [host]: 'w2' } }));
    await provide();
    await writeFile(join(config, 'config.json'), JSON.stringify({ credsStore: 'w2' }));
    await provide();
  });
});

describe('our own image on a base of a registry that wants a login', () => {
  it('[C6] is made with the login of the user’s docker, and not without', { timeout: 120_000 }, async () => {
    const { host } = await registry({ htpasswd });
    const base = await newBase();
    await publish(base.reference, `${host}/private`, login);
    const config = await newFolder('own');
    vi.stubEnv('DOCKER_CONFIG', config);
    vi.stubEnv('DOCKER_HOST', endpoint);
    onTestFinished(() => void vi.unstubAllEnvs());
    const events: ProgressEvent[] = [];
    const stopped = new Error('from packages');
    const make = () =>
      makeImageHere('test', {
        progress: (event) => {
          events.push(event);
          // Without a login the other way is taken, which takes minutes and is another test's.
          if (/packages instead/.test(event.message)) throw stopped;
        },
        consent: async () => false,
        baseReference: `${host}/private:latest`,
        labels: testEngine().labels(),
      });
    await expect(make()).rejects.toBe(stopped);

    const auth = Buffer.from(`${login.username}:${login.password}`).toString('base64');
    await writeFile(join(config, 'config.json'), JSON.stringify({ auths: { [host]: { auth } } }));
    const made = await make();
    onTestFinished(() => engine.remove(made.reference));
    expect(made.how).toBe('pulled');
    expect(JSON.stringify(events)).not.toContain(login.password);
  });
});

describe('a registry that dies in the middle of a pull', () => {
  it('[C6] is image_pull_failed, and nothing of the image is there', { timeout: 90_000 }, async () => {
    const { host } = await registry();
    const proxy = await dyingProxy(Number(host.split(':')[1]), 2_000_000);
    // Layers that are on the engine already would not be fetched.
    const base = await newBase('RUN head -c 20000000 /dev/urandom > /large');
    await publish(base.reference, `${host}/large`);
    await engine.remove(base.reference);
    const reference = `127.0.0.1:${proxy.port}/large:latest`;
    const folder = await newProject({ 'Dockerfile.sallyport': `FROM ${reference}\n` });
    await expect(resolveApproved(await projectImages(), folder)).rejects.toMatchObject({
      code: 'image_pull_failed',
    });
    expect(await engine.find(reference)).toBeUndefined();
    expect(proxy.cut()).toBe(true);
  });
});

/** Passes so many bytes on, then cuts everything off and takes no more. */
async function dyingProxy(
  port: number,
  bytes: number,
): Promise<{ readonly port: number; readonly cut: () => boolean }> {
  let left = bytes;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        open.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream);
    upstream.on('data', (chunk: Buffer) => {
      left -= chunk.length;
      if (left > 0) client.write(chunk);
      else {
        server.close();
        for (const socket of open) socket.destroy();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { port: address.port, cut: () => left <= 0 };
}
