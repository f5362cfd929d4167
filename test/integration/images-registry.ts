/** A real registry on this machine for one test file: Debian's docker-registry on a free loopback port. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { canInstall, installPackages } from '../../src/images/debian-packages.ts';
import { silent } from '../../src/lib/progress.ts';

export interface Registry {
  readonly host: string;
  readonly stop: () => Promise<void>;
}

/** A port that nobody listens on: it was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

export async function startRegistry(): Promise<Registry> {
  const port = await freePort();
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-registry-'));
  const config = join(folder, 'config.yml');
  await writeFile(
    config,
    `version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: ${folder}/data}}\nhttp: {addr: "127.0.0.1:${port}"}\n`,
  );
  let child = await serve(config);
  if (child === undefined && canInstall()) {
    await installPackages(['docker-registry'], { progress: silent });
    child = await serve(config);
  }
  if (child === undefined) throw new Error('docker-registry is not installed');
  const running = child;
  return {
    host: `127.0.0.1:${port}`,
    stop: async () => {
      const exited = once(running, 'exit');
      running.kill('SIGTERM');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Resolves when it says that it listens; undefined when there is no such program. */
async function serve(config: string): Promise<ChildProcess | undefined> {
  const child = spawn('docker-registry', ['serve', config], { stdio: ['ignore', 'ignore', 'pipe'] });
  const listens = new Promise<boolean>((resolve) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (line.includes('listening on')) resolve(true);
    });
    child.once('error', () => resolve(false));
    child.once('exit', () => resolve(false));
  });
  return (await listens) ? child : undefined;
}

/** Pushing is not an operation of the product, so the test speaks to the engine itself. */
export async function push(socketPath: string, repository: string, tag: string): Promise<void> {
  const call = request({
    socketPath,
    method: 'POST',
    path: `/v1.41/images/${repository}/push?tag=${tag}`,
    headers: { 'X-Registry-Auth': Buffer.from('{}').toString('base64') },
  });
  call.end();
  const [response] = await once(call, 'response');
  let text = '';
  for await (const chunk of response as AsyncIterable<Buffer>) text += chunk.toString('utf8');
  if (text.includes('"error"')) throw new Error(`push of ${repository}:${tag} failed: ${text.slice(-500)}`);
}
