/** What the CLI takes from the process environment. */

export interface CliEnvironment {
  readonly debug: boolean;
  readonly ci: boolean;
  /** A desktop on which a browser could open. */
  readonly hasDisplay: boolean;
}

export function readCliEnvironment(env: NodeJS.ProcessEnv = process.env): CliEnvironment {
  return {
    debug: (env['SALLYPORT_DEBUG'] ?? '') !== '',
    ci: (env['CI'] ?? '') !== '' && env['CI'] !== 'false',
    hasDisplay:
      process.platform === 'darwin' ||
      ['DISPLAY', 'WAYLAND_DISPLAY'].some((name) => (env[name] ?? '') !== ''),
  };
}
