/** What the CLI takes from the process environment, and the one variable that it sets there. */

import type { EngineName } from '../protocol/engine-environment.ts';

export interface CliEnvironment {
  readonly debug: boolean;
  readonly ci: boolean;
  /** A desktop on which a browser could open. */
  readonly hasDisplay: boolean;
  /** `SALLYPORT_RELEASES`: a URL or a folder with the newest release. */
  readonly releases?: string;
}

export function readCliEnvironment(env: NodeJS.ProcessEnv = process.env): CliEnvironment {
  const releases = env['SALLYPORT_RELEASES'] ?? '';
  return {
    ...(releases === '' ? {} : { releases }),
    debug: (env['SALLYPORT_DEBUG'] ?? '') !== '',
    ci: (env['CI'] ?? '') !== '' && env['CI'] !== 'false',
    hasDisplay:
      process.platform === 'darwin' ||
      ['DISPLAY', 'WAYLAND_DISPLAY'].some((name) => (env[name] ?? '') !== ''),
  };
}

/** As if the environment named the engine: for every client of this process and the daemons that they start. */
export function useEngine(name: EngineName, env: NodeJS.ProcessEnv = process.env): void {
  if (name !== 'auto') env['SALLYPORT_ENGINE'] = name;
}
