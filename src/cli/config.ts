/** What the CLI takes from the process environment. */

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
