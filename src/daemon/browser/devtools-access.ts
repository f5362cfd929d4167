/**
 * Which requests may reach the DevTools of a browser. The port is on this machine's loopback, so every local user and every web page that is
 * open here can connect to it: the token in the path decides, whatever is asked for.
 */

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export interface DevToolsPlace {
  /** Of this machine. */
  readonly port: number;
  readonly token: string;
}

export type Admission =
  | { readonly path: string }
  | { readonly status: 401 | 403 | 421; readonly reason: string };

export const newToken = (): string => randomBytes(32).toString('base64url');

/** `path` is what the browser is asked for, without the token. */
export function admit(
  { url = '/', headers }: { readonly url?: string | undefined; readonly headers: IncomingHttpHeaders },
  { port, token }: DevToolsPlace,
): Admission {
  // SECURITY: a name that somebody's DNS leads here (rebinding) is not one of these.
  const names = ['127.0.0.1', 'localhost', '[::1]'].map((name) => `${name}:${port}`);
  if (!names.includes(headers.host ?? ''))
    return { status: 421, reason: 'this is not the name of this port' };
  if (isFromPage(headers)) return { status: 403, reason: 'web pages may not use it' };
  const [, given = '', rest] = /^\/([^/?#]*)(.*)$/s.exec(url) ?? [];
  if (!isEqual(given, token)) return { status: 401, reason: 'the path needs the token of `sally browser`' };
  return { path: rest?.startsWith('/') === true ? rest : `/${rest ?? ''}` };
}

/** SECURITY: clients of DevTools are programs and send no Origin. A page that learnt the token is refused all the same. */
function isFromPage(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  return headers.origin !== undefined || (site !== undefined && site !== 'none');
}

/** Takes the same time for every wrong token. */
const isEqual = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other));
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
