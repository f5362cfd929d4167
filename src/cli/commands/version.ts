/** `sally version`: this program, and the daemon that runs. It starts none. */

import { packageInfo } from '../../lib/package-root.ts';
import { isSallyportError } from '../../protocol/errors.ts';
import type { HealthView } from '../../protocol/views.ts';
import { DaemonClient } from '../../sdk/client.ts';
import { exitCode } from '../exit-codes.ts';
import { print, printJson } from '../output.ts';

export async function versionCommand(options: { readonly json?: true }): Promise<number> {
  const { version } = packageInfo();
  const health = await daemonHealth();
  if (options.json === true) {
    printJson({
      version,
      node: process.versions.node,
      daemon: health === undefined ? null : { version: health.version, pid: health.pid },
      engine: health === undefined ? null : health.engine,
    });
    return exitCode.ok;
  }
  print(`sallyport  ${version}`);
  print(`node       ${process.versions.node}`);
  print(`daemon     ${health === undefined ? 'not running' : `${health.version} (pid ${health.pid})`}`);
  if (health !== undefined) print(`engine     ${health.engine.version} at ${health.engine.endpoint}`);
  return exitCode.ok;
}

/** Of the engine that the environment names. Undefined: none runs. */
export async function daemonHealth(signal?: AbortSignal): Promise<HealthView | undefined> {
  const client = new DaemonClient({ startDaemon: false });
  try {
    return await healthOf(client, signal);
  } finally {
    client.close();
  }
}

/** Undefined: the daemon does not run. */
export async function healthOf(client: DaemonClient, signal?: AbortSignal): Promise<HealthView | undefined> {
  try {
    return await client.json<HealthView>('GET', '/v1/health', signal === undefined ? {} : { signal });
  } catch (error) {
    if (isSallyportError(error, 'daemon_unreachable')) return undefined;
    throw error;
  }
}
