/** Where the private engine lives. The default is one engine a machine, made by root and shared by its users. */

import { isAbsolute, join, normalize } from 'node:path';
import { SallyportError } from '../../protocol/errors.ts';
import type { SetupEnvironment } from '../config.ts';

export interface PrivateEnginePaths {
  readonly runDir: string;
  readonly stateDir: string;
  readonly socket: string;
  readonly pidFile: string;
  readonly execRoot: string;
  readonly dataRoot: string;
  readonly logFile: string;
  readonly configFile: string;
  /** An engine in a folder of its own: it must not touch the bridge and firewall of the default one. */
  readonly separate: boolean;
}

/** `sun_path` of a Unix socket address holds 108 bytes with the closing zero. */
const maxSocketBytes = 107;
/** The longest of the sockets that dockerd's containerd makes below the exec-root. */
const longestInnerSocket = 'containerd/containerd.sock.ttrpc';

export function privateEnginePaths(env: Pick<SetupEnvironment, 'engineDir'>): PrivateEnginePaths {
  if (env.engineDir === undefined) {
    return layOut('/run/sallyport/engine', '/var/lib/sallyport/engine', false);
  }
  if (!isAbsolute(env.engineDir)) {
    throw refusal(env.engineDir, 'is not an absolute path', 'Set SALLYPORT_ENGINE_DIR to an absolute path.');
  }
  const folder = normalize(env.engineDir).replace(/\/+$/, '');
  if (folder === '') {
    throw refusal(env.engineDir, 'is the root folder', 'Set SALLYPORT_ENGINE_DIR to a folder of its own.');
  }
  const paths = layOut(folder, folder, true);
  const bytes = Buffer.byteLength(join(paths.execRoot, longestInnerSocket));
  if (bytes > maxSocketBytes) {
    throw refusal(
      env.engineDir,
      `is ${bytes - maxSocketBytes} bytes too long for the sockets that an engine makes in it`,
      'Set SALLYPORT_ENGINE_DIR to a shorter path, such as /tmp/sally-engine.',
    );
  }
  return paths;
}

function layOut(runDir: string, stateDir: string, separate: boolean): PrivateEnginePaths {
  return {
    runDir,
    stateDir,
    socket: join(runDir, 'docker.sock'),
    pidFile: join(runDir, 'docker.pid'),
    execRoot: join(runDir, 'exec'),
    dataRoot: join(stateDir, 'data'),
    logFile: join(stateDir, 'dockerd.log'),
    configFile: join(stateDir, 'daemon.json'),
    separate,
  };
}

function refusal(engineDir: string, reason: string, advice: string): SallyportError {
  return new SallyportError('usage', `SALLYPORT_ENGINE_DIR ${JSON.stringify(engineDir)} ${reason}`, {
    advice,
    details: { engineDir },
  });
}
