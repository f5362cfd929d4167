/** What the process environment says about set-up, read once at the edge and passed in everywhere else. */

import { homedir } from 'node:os';

export interface SetupEnvironment {
  readonly platform: NodeJS.Platform;
  /** -1 where the platform has no user ids. */
  readonly uid: number;
  readonly home: string;
  /** Nobody is there to be asked, and whoever made the machine expects it to work. */
  readonly ci: boolean;
  /** `SALLYPORT_ENGINE_DIR`: everything of the private engine under one folder. */
  readonly engineDir?: string;
  readonly searchPath: readonly string[];
  /** Where Sallyport keeps its own state. */
  readonly stateDir: string;
  /** False: SALLYPORT_STATE_DIR names another state folder than the user's own. */
  readonly stateIsDefault: boolean;
  /** The only variables that a daemon or command started by set-up inherits. */
  readonly childVariables: Readonly<Record<string, string>>;
}

/** A desktop user's PATH often lacks these, and dockerd looks for iptables and its runtimes there. */
const systemFolders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

const inherited = [
  'HOME',
  'USER',
  'LANG',
  'XDG_RUNTIME_DIR',
  'DBUS_SESSION_BUS_ADDRESS',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
];

export function readSetupEnvironment(env: NodeJS.ProcessEnv = process.env): SetupEnvironment {
  const set = (name: string): string | undefined => (env[name] === '' ? undefined : env[name]);
  const home = set('HOME') ?? homedir();
  const engineDir = set('SALLYPORT_ENGINE_DIR');
  const searchPath = [...new Set([...(set('PATH') ?? '').split(':').filter(Boolean), ...systemFolders])];
  const childVariables: Record<string, string> = { PATH: searchPath.join(':') };
  for (const name of inherited) {
    const value = set(name);
    if (value !== undefined) childVariables[name] = value;
  }
  return {
    platform: process.platform,
    uid: process.getuid?.() ?? -1,
    home,
    ci: set('CI') !== undefined && env['CI'] !== 'false',
    searchPath,
    stateDir: set('SALLYPORT_STATE_DIR') ?? `${set('XDG_STATE_HOME') ?? `${home}/.local/state`}/sallyport`,
    stateIsDefault: set('SALLYPORT_STATE_DIR') === undefined,
    childVariables,
    ...(engineDir === undefined ? {} : { engineDir }),
  };
}
