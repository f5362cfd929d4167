/**
 * Where an engine may be, in the order in which it is looked for. `docs/engines.md` documents this order.
 *
 * An exclusive candidate is the user's explicit choice: if it does not answer, nothing else is tried, because running
 * untrusted code on another machine than the chosen one is not a harmless fallback.
 */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { SallyportError } from '../../../protocol/errors.ts';
import { isSallyportError } from '../../../protocol/errors.ts';
import type { EngineEnvironment } from '../config.ts';
import { contextEndpoint, currentContextName } from './contexts.ts';
import { type Endpoint, parseEndpoint, type TlsFiles } from './endpoint.ts';

export interface Candidate {
  /** Why this place is looked at: `DOCKER_HOST`, `docker context "x"`, `OrbStack`. */
  readonly source: string;
  readonly exclusive: boolean;
  readonly endpoint: Endpoint | SallyportError;
}

async function attempt<T>(read: () => T | Promise<T>): Promise<T | SallyportError> {
  try {
    return await read();
  } catch (error) {
    if (isSallyportError(error)) return error;
    throw error;
  }
}

function environmentTls(env: EngineEnvironment): TlsFiles | undefined {
  if (!env.dockerTlsVerify && env.dockerCertPath === undefined) return undefined;
  const folder = env.dockerCertPath ?? env.dockerConfigDir;
  const [caPath, certPath, keyPath] = [
    join(folder, 'ca.pem'),
    join(folder, 'cert.pem'),
    join(folder, 'key.pem'),
  ];
  // As the docker CLI has it: a client certificate is sent where there is one; verifying needs the CA.
  const hasClient = existsSync(certPath) || existsSync(keyPath);
  return {
    ...(env.dockerTlsVerify || existsSync(caPath) ? { caPath } : {}),
    ...(hasClient ? { certPath, keyPath } : {}),
    skipVerify: !env.dockerTlsVerify,
  };
}

/** Sockets at their well-known places; `privateSocket` is the engine that `sally setup` made, and comes last. */
export function knownSockets(
  env: EngineEnvironment,
  privateSocket?: string,
): ReadonlyArray<{ readonly source: string; readonly path: string }> {
  const runtimeDir = env.xdgRuntimeDir ?? (env.platform === 'linux' ? `/run/user/${env.uid}` : undefined);
  const colimaHomes = [
    env.colimaHome,
    `${env.home}/.colima`,
    `${env.xdgConfigHome ?? `${env.home}/.config`}/colima`,
  ];
  const rows: Array<{ source: string; path: string }> = [
    { source: 'default socket', path: '/var/run/docker.sock' },
    { source: 'Docker Desktop', path: `${env.home}/.docker/run/docker.sock` },
    { source: 'Docker Desktop for Linux', path: `${env.home}/.docker/desktop/docker.sock` },
    { source: 'OrbStack', path: `${env.home}/.orbstack/run/docker.sock` },
    ...colimaHomes
      .filter((home) => home !== undefined)
      .map((home) => ({ source: 'colima', path: `${home}/default/docker.sock` })),
    ...(runtimeDir === undefined
      ? []
      : [
          { source: 'rootless Docker', path: `${runtimeDir}/docker.sock` },
          { source: 'rootless Podman', path: `${runtimeDir}/podman/podman.sock` },
        ]),
    { source: 'Podman', path: '/run/podman/podman.sock' },
    { source: 'Podman machine', path: `${env.home}/.local/share/containers/podman/machine/podman.sock` },
    ...(privateSocket === undefined ? [] : [{ source: "Sallyport's private engine", path: privateSocket }]),
  ];
  const seen = new Set<string>();
  return rows.filter(({ path }) => !seen.has(path) && seen.add(path));
}

export async function engineCandidates(
  env: EngineEnvironment,
  privateSocket?: string,
): Promise<readonly Candidate[]> {
  const dockerHost = env.dockerHost;
  if (dockerHost !== undefined) {
    const endpoint = await attempt(() => parseEndpoint(dockerHost, environmentTls(env)));
    return [{ source: 'DOCKER_HOST', exclusive: true, endpoint }];
  }
  const dockerContext = env.dockerContext;
  if (dockerContext !== undefined && dockerContext !== 'default') {
    const endpoint = await attempt(() => contextEndpoint(env.dockerConfigDir, dockerContext));
    return [{ source: `DOCKER_CONTEXT=${dockerContext}`, exclusive: true, endpoint }];
  }
  const candidates: Candidate[] = [];
  if (dockerContext === undefined) {
    const current = await currentContext(env);
    if (current !== undefined) candidates.push(current);
  }
  const known = knownSockets(env, privateSocket);
  const { holder } = env;
  const first = holder === undefined ? [] : [{ source: 'engine of the sandboxes here', path: holder }];
  for (const { source, path } of [...first, ...known.filter(({ path }) => path !== holder)]) {
    candidates.push({ source, exclusive: false, endpoint: { kind: 'unix', path } });
  }
  return candidates;
}

async function currentContext(env: EngineEnvironment): Promise<Candidate | undefined> {
  const name = await attempt(() => env.currentContext ?? currentContextName(env.dockerConfigDir));
  if (name === 'default') return undefined;
  if (name === undefined) return undefined;
  if (name instanceof Error) return { source: 'docker config', exclusive: true, endpoint: name };
  const endpoint = await attempt(() => contextEndpoint(env.dockerConfigDir, name));
  // A local socket whose engine is not running (a quit Docker Desktop) gives way to another local engine; a remote one
  // was chosen so that containers run elsewhere.
  const exclusive = endpoint instanceof Error || endpoint.kind !== 'unix';
  return { source: `docker context "${name}"`, exclusive, endpoint };
}
