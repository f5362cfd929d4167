/**
 * The port inside where the DevTools of a browser listen, and which command is that browser. Whoever reaches this port drives the browser:
 * the daemon asks for a token there, a published port asks for none.
 */

import { SallyportError } from '../protocol/errors.ts';

/** Where DevTools listen inside. */
export const devToolsPort = 9222;

/** Of a browser that the daemon starts. */
export const browserProfile = '/tmp/sallyport-browser';

/** Whether a running command is the browser that the daemon started. */
export const isBrowser = (argv: readonly string[]): boolean =>
  argv.includes(`--user-data-dir=${browserProfile}`);

/** SECURITY: a client of a published port needs no token, so every user of this machine would drive the browser. */
export function requireNoDevTools(box: number, name: string, running: readonly (readonly string[])[]): void {
  if (box !== devToolsPort || !running.some(isBrowser)) return;
  throw new SallyportError(
    'refused_by_policy',
    `port ${box} of sandbox ${name} cannot be published: the DevTools of its browser listen there, and a published port asks for no token`,
    {
      details: { sandbox: name, port: box },
      advice: `\`sally browser ${name}\` prints the address with the token; to publish the port, stop the browser first: \`sally browser ${name} --stop\`.`,
    },
  );
}
