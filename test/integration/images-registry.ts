/** A real registry on this machine for one test file: Debian's docker-registry on a free loopback port. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { canInstall, installPackages } from '../../src/images/debian-packages.ts';
import { silent } from '../../src/lib/progress.ts';
import { freePort } from '../support/free-port.ts';

export interface Registry {
  readonly host: string;
  readonly stop: () => Promise<void>;
}

const program = '/usr/bin/docker-registry';

export interface RegistryOptions {
  /** A line of such a file: it wants a login. */
  readonly htpasswd?: string;
  /** In a container of this engine, which then pulls from what it runs itself. */
  readonly container?: { readonly endpoint: string; readonly image: string };
}

export async function startRegistry(options: RegistryOptions = {}): Promise<Registry> {
  const port = await freePort();
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-registry-'));
  const config = join(folder, 'config.yml');
  const users = join(folder, 'htpasswd');
  if (options.htpasswd !== undefined) await writeFile(users, `${options.htpasswd}\n`);
  const auth = options.htpasswd === undefined ? '' : `auth: {htpasswd: {realm: test, path: ${users}}}\n`;
  await writeFile(
    config,
    `version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: ${folder}/data}}\nhttp: {addr: "127.0.0.1:${port}"}\n${auth}`,
  );
  const line = options.container === undefined ? [program] : containerLine(folder, options.container);
  let child = await serve([...line, 'serve', config]);
  if (child === undefined && canInstall()) {
    await installPackages(['docker-registry'], { progress: silent });
    child = await serve([...line, 'serve', config]);
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

/** In the foreground: a signal to the command line is one to what it runs, and nothing of it stays. */
function containerLine(folder: string, { endpoint, image }: NonNullable<RegistryOptions['container']>) {
  const user = `${process.getuid?.() ?? 0}:${process.getgid?.() ?? 0}`;
  const volumes = ['--volume', `${program}:${program}:ro`, '--volume', `${folder}:${folder}`];
  const run = [
    'run',
    '--rm',
    '--network',
    'host',
    '--user',
    user,
    ...volumes,
    '--entrypoint',
    program,
    image,
  ];
  return ['docker', '--host', endpoint, ...run];
}

/** Resolves when it says that it listens; undefined when there is no such program. */
async function serve([command = '', ...args]: readonly string[]): Promise<ChildProcess | undefined> {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
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
export async function push(
  socketPath: string,
  repository: string,
  tag: string,
  login: Readonly<Record<string, string>> = {},
): Promise<void> {
  const call = request({
    socketPath,
    method: 'POST',
    path: `/v1.41/images/${repository}/push?tag=${tag}`,
    headers: { 'X-Registry-Auth': Buffer.from(JSON.stringify(login)).toString('base64') },
  });
  call.end();
  const [response] = await once(call, 'response');
  let text = '';
  for await (const chunk of response as AsyncIterable<Buffer>) text += chunk.toString('utf8');
  if (text.includes('"error"')) throw new Error(`push of ${repository}:${tag} failed: ${text.slice(-500)}`);
}
