/**
 * Suffixes under which strangers get names of their own: a wildcard below one would allow names of anybody. They are those of
 * the public list, also the private part of it (github.io), and some that are not in it and yet are anybody's.
 */

import { getPublicSuffix } from 'tldts';

const unlisted: ReadonlySet<string> = new Set([
  ...[
    'amazonaws.com',
    'on.aws',
    'run.app',
    'railway.app',
    'glitch.me',
    'replit.dev',
    'fastly.net',
    'b-cdn.net',
  ],
  ...['wordpress.com', 'tumblr.com', 'loca.lt', 'nip.io', 'sslip.io', 'xip.io', 'localtest.me', 'lvh.me'],
]);

export function isPublicSuffix(name: string): boolean {
  return (
    !name.includes('.') ||
    unlisted.has(name) ||
    getPublicSuffix(name, { allowPrivateDomains: true, validateHostname: false }) === name
  );
}
