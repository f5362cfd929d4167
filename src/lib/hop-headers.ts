/** Headers of HTTP that are about one connection and not about the message (RFC 9110 7.6.1): who relays does not pass them on. */

const always: readonly string[] = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
];

/** In lower case; `named` are the words of `Connection`. */
export const hopHeaders = (named: readonly string[]): ReadonlySet<string> =>
  new Set([...always, ...named.map((name) => name.trim().toLowerCase())]);
