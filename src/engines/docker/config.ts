/** What the process environment says about engines, read once at the edge and passed in everywhere else. */

import { homedir, userInfo } from 'node:os';
import { currentContext } from '../../lib/current-context.ts';
import { engineFolderPath, engineInFolder } from '../../lib/engine-folders.ts';
import { stateLocation } from '../../lib/state-location.ts';
import {
  engineChoice,
  engineVariables,
  noCurrentContext,
  withCurrentContext,
} from '../../protocol/engine-environment.ts';

export interface EngineEnvironment {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  readonly uid: number;
  readonly dockerHost?: string;
  readonly dockerContext?: string;
  /** Stands for the current context of docker's settings; `default`: none is. Absent: read them. */
  readonly currentContext?: string;
  /** The socket of the engine that has the sandboxes of this state folder. */
  readonly holder?: string;
  readonly dockerConfigDir: string;
  readonly dockerTlsVerify: boolean;
  readonly dockerCertPath?: string;
  readonly xdgRuntimeDir?: string;
  readonly xdgConfigHome?: string;
  readonly colimaHome?: string;
}

/** The environment with the variables of another engine in place of its own. */
export function engineEnvironmentOf(
  variables: Readonly<Record<string, string>>,
  env: NodeJS.ProcessEnv = process.env,
): EngineEnvironment {
  const others = Object.entries(env).filter(([name]) => !engineVariables.includes(name));
  return readEngineEnvironment({ ...Object.fromEntries(others), ...noCurrentContext, ...variables });
}

export function readEngineEnvironment(env: NodeJS.ProcessEnv = process.env): EngineEnvironment {
  const home = env['HOME'] ?? homedir();
  const set = (name: string): string | undefined => (env[name] === '' ? undefined : env[name]);
  const dockerHost = set('DOCKER_HOST');
  const dockerContext = set('DOCKER_CONTEXT');
  const context = set('SALLYPORT_CURRENT_CONTEXT');
  const holder = holderSocket(env);
  const dockerCertPath = set('DOCKER_CERT_PATH');
  const xdgRuntimeDir = set('XDG_RUNTIME_DIR');
  const xdgConfigHome = set('XDG_CONFIG_HOME');
  const colimaHome = set('COLIMA_HOME');
  return {
    platform: process.platform,
    home,
    uid: userInfo().uid,
    dockerConfigDir: set('DOCKER_CONFIG') ?? `${home}/.docker`,
    dockerTlsVerify: set('DOCKER_TLS_VERIFY') !== undefined,
    ...(dockerHost === undefined ? {} : { dockerHost }),
    ...(dockerContext === undefined ? {} : { dockerContext }),
    ...(context === undefined ? {} : { currentContext: context }),
    ...(holder === undefined ? {} : { holder }),
    ...(dockerCertPath === undefined ? {} : { dockerCertPath }),
    ...(xdgRuntimeDir === undefined ? {} : { xdgRuntimeDir }),
    ...(xdgConfigHome === undefined ? {} : { xdgConfigHome }),
    ...(colimaHome === undefined ? {} : { colimaHome }),
  };
}

/** Another engine that comes to answer at an earlier place must not take over what this one has. */
function holderSocket(env: NodeJS.ProcessEnv): string | undefined {
  const { stateDir } = stateLocation(env);
  const { key } = engineChoice(
    withCurrentContext(env, () => currentContext(env)),
    'docker',
  );
  const { endpoint, holdsSandboxes } = engineInFolder(engineFolderPath(stateDir, key), key);
  return holdsSandboxes && endpoint?.startsWith('unix://') ? endpoint.slice('unix://'.length) : undefined;
}
