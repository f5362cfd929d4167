/** `sally daemon`: start, stop, status, and its log. */

import { once } from 'node:events';
import { createReadStream, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { EngineFolder } from '../../lib/engine-folders.ts';
import { SallyportError } from '../../protocol/errors.ts';
import type { HealthView } from '../../protocol/views.ts';
import { DaemonClient } from '../../sdk/client.ts';
import type { CliContext } from '../context.ts';
import { engineClient, engineFolders, withEachEngine } from '../engine-clients.ts';
import { exitCode } from '../exit-codes.ts';
import { pump } from '../foreground.ts';
import { LastLines } from '../last-lines.ts';
import { print, printJson, shownContent } from '../output.ts';
import { ago } from '../table.ts';
import { daemonHealth, healthOf } from './version.ts';

const defaultTail = 100;

export interface StartOptions {
  readonly listen?: string;
  readonly dangerouslyListenAnywhere?: true;
  readonly json?: true;
}

export async function daemonStart(options: StartOptions, { signal }: CliContext): Promise<number> {
  const before = await daemonHealth(signal);
  if (before !== undefined && options.listen !== undefined) {
    throw new SallyportError('daemon_running', `a daemon runs already (pid ${before.pid})`, {
      advice: 'Stop it with `sally daemon stop --keep` first: it listens where it was told at its start.',
    });
  }
  const client = new DaemonClient();
  try {
    await client.ensure(signal, listenArgs(options));
    const health = await client.json<HealthView>('GET', '/v1/health', { signal });
    if (options.json === true) printJson(health);
    else print(`the daemon ${before === undefined ? 'is started' : 'was running'} (pid ${health.pid})`);
    return exitCode.ok;
  } finally {
    client.close();
  }
}

function listenArgs({ listen, dangerouslyListenAnywhere }: StartOptions): readonly string[] {
  const anywhere = dangerouslyListenAnywhere === true ? ['--dangerously-listen-anywhere'] : [];
  return listen === undefined ? anywhere : ['--listen', listen, ...anywhere];
}

export interface StopOptions {
  readonly keep?: true;
  readonly all?: true;
}

export async function daemonStop(options: StopOptions, { signal }: CliContext): Promise<number> {
  const keep = options.keep === true;
  let stopped = 0;
  const stop = async (client: DaemonClient): Promise<void> => {
    const before = await healthOf(client, signal);
    await client.shutdown({ keep });
    if (before === undefined) return;
    stopped += 1;
    print(
      `the daemon of ${before.engine.endpoint} is stopped; its sandboxes ${keep ? 'keep running' : 'are stopped'}`,
    );
  };
  if (options.all === true) await withEachEngine(stop);
  else {
    const client = new DaemonClient({ startDaemon: false });
    await stop(client).finally(() => client.close());
  }
  if (stopped === 0) print('the daemon is not running');
  return exitCode.ok;
}

export async function daemonStatus(
  options: { readonly json?: true },
  { signal }: CliContext,
): Promise<number> {
  const client = new DaemonClient({ startDaemon: false });
  try {
    const health = await healthOf(client, signal);
    const others = await otherDaemons(client.folder, signal);
    if (options.json === true)
      printJson({ ...(health ?? { running: false }), other_engines: others.map(otherView) });
    else {
      if (health === undefined) print('the daemon is not running; it starts when it is needed');
      else for (const line of linesOf(health, client.folder)) print(line);
      for (const other of others) print(otherLine(other));
    }
    return health === undefined ? exitCode.failed : exitCode.ok;
  } finally {
    client.close();
  }
}

interface OtherDaemon {
  readonly engine: EngineFolder;
  /** Undefined: its daemon does not run. */
  readonly health: HealthView | undefined;
}

async function otherDaemons(own: string, signal: AbortSignal): Promise<readonly OtherDaemon[]> {
  const found: OtherDaemon[] = [];
  for (const engine of engineFolders()) {
    if (engine.path === own) continue;
    const client = engineClient(engine);
    try {
      found.push({ engine, health: await healthOf(client, signal) });
    } finally {
      client.close();
    }
  }
  return found;
}

const otherView = ({ engine: { key, path, endpoint }, health }: OtherDaemon) => ({
  engine_key: key,
  ...(endpoint === undefined ? {} : { endpoint }),
  state_folder: path,
  ...(health === undefined ? { running: false } : { running: true, pid: health.pid }),
});

function otherLine({ engine: { key, endpoint }, health }: OtherDaemon): string {
  const state = health === undefined ? 'its daemon is not running' : `daemon running (pid ${health.pid})`;
  return `other      ${endpoint ?? key}: ${state}`;
}

function linesOf(
  { pid, version, started_at, engine, sandboxes }: HealthView,
  folder: string,
): readonly string[] {
  const states = Object.entries(sandboxes).map(([state, count]) => `${count} ${state.toLowerCase()}`);
  return [
    `daemon     running (pid ${pid}), version ${version}, started ${ago(started_at)}`,
    `engine     ${engine.version} at ${engine.endpoint}${engine.reachable ? '' : ', does not answer'}`,
    `sandboxes  ${states.length === 0 ? 'none' : states.join(', ')}`,
    `state      ${folder}`,
  ];
}

export async function daemonLogs(
  options: { readonly tail?: number; readonly follow?: true },
  { signal }: CliContext,
): Promise<number> {
  const file = join(await daemonFolder(signal), 'daemon.log');
  const last = new LastLines(options.tail ?? defaultTail);
  try {
    for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) last.push(chunk);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    throw new SallyportError('daemon_unreachable', `there is no log yet at ${file}`, {
      advice: 'No daemon ran with this state folder; `sally daemon start` starts one.',
    });
  }
  await pump(shownContent(last.chunks()), process.stdout);
  if (options.follow === true) await pump(shownContent(grown(file, last.totalBytes, signal)), process.stdout);
  return signal.aborted ? exitCode.interrupted : exitCode.ok;
}

/** Of the engine that the environment names, or of the one that is used in its place. */
async function daemonFolder(signal: AbortSignal): Promise<string> {
  const client = new DaemonClient({ startDaemon: false });
  try {
    await healthOf(client, signal);
    return client.folder;
  } finally {
    client.close();
  }
}

/** What is added to the file from `offset` on. One that became shorter was begun anew. */
async function* grown(file: string, offset: number, signal: AbortSignal): AsyncGenerator<Buffer> {
  const watcher = watch(file);
  signal.addEventListener('abort', () => watcher.close(), { once: true });
  let at = offset;
  while (!signal.aborted) {
    const { size } = await stat(file);
    if (size < at) at = 0;
    if (size > at) {
      for await (const chunk of createReadStream(file, {
        start: at,
        end: size - 1,
      }) as AsyncIterable<Buffer>) {
        at += chunk.length;
        yield chunk;
      }
    } else await once(watcher, 'change', { signal }).catch(() => {});
  }
}
