/**
 * Who may ask. On the Unix socket the file's mode has answered that. Over TCP everything on the machine, and every web
 * page in its browsers, can connect: there it takes the token, a Host that is an address (or localhost) and no foreign Origin.
 */

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { chmod, open, readFile, rename } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { SallyportError } from '../protocol/errors.ts';
import { withStateLock } from '../store/state-lock.ts';

export type Authenticate = (request: IncomingMessage) => void;

export const socketAuthentication: Authenticate = () => {};

export function tokenAuthentication(token: string): Authenticate {
  const expected = digest(token);
  return (request) => {
    requireOwnOrigin(request);
    // SECURITY: digests, so that neither length nor content decides how long the comparison takes.
    if (!timingSafeEqual(digest(bearerToken(request)), expected)) {
      throw new SallyportError('unauthenticated', 'the token is missing or wrong');
    }
  };
}

/** For every port of this machine that answers more than a page. */
export function requireOwnOrigin({ headers }: Pick<IncomingMessage, 'headers'>): void {
  const { host = '', origin } = headers;
  // SECURITY: a name that an attacker's DNS points to this machine would make his page same-origin with the daemon.
  if (!isOwnHost(host)) throw new SallyportError('origin_refused', 'the Host header is no address');
  if (origin !== undefined && origin !== `http://${host}`) {
    throw new SallyportError('origin_refused', 'the request comes from a page of another origin');
  }
}

/** Empty where there is none. */
export function bearerToken({ headers }: Pick<IncomingMessage, 'headers'>): string {
  return /^Bearer ([\x21-\x7e]{1,200})$/.exec(headers.authorization ?? '')?.[1] ?? '';
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

export function isOwnHost(header: string): boolean {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:[\]]+)(?::\d{1,5})?$/.exec(header);
  const name = match?.[1]?.replace(/^\[|\]$/g, '') ?? '';
  return name === 'localhost' || isIP(name) !== 0;
}

/** The token at this path; made when it is first needed. Daemons that start at the same time get the same one. */
export async function provideToken(path: string): Promise<string> {
  return (await readToken(path)) ?? (await withStateLock(`${path}.lock`, () => makeToken(path)));
}

async function makeToken(path: string): Promise<string> {
  const made = await readToken(path);
  if (made !== undefined) return made;
  const token = randomBytes(32).toString('base64url');
  const next = `${path}.new`;
  const file = await open(next, 'w', 0o600);
  try {
    await file.chmod(0o600);
    await file.writeFile(`${token}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  // A reader without the lock finds all of it or nothing.
  await rename(next, path);
  return token;
}

async function readToken(path: string): Promise<string | undefined> {
  const kept = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  if (kept.trim() === '') return undefined;
  await chmod(path, 0o600);
  return kept.trim();
}

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

export function readListenAddress(text: string, anywhere: boolean): ListenAddress {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2] ?? '';
  const port = Number(match?.[3] ?? Number.NaN);
  if (isIP(host) === 0 || !(port >= 0 && port <= 65535)) {
    throw new SallyportError('listen_refused', `${JSON.stringify(text)} is no address and port`, {
      advice: 'Write it like 127.0.0.1:7333 or [::1]:7333.',
    });
  }
  // SECURITY: the token travels in the clear, and whoever has it has everything that this user may do with an engine.
  if (!anywhere && host !== '::1' && !/^127\./.test(host)) {
    throw new SallyportError('listen_refused', `${host} is not the loopback of this machine`);
  }
  return { host, port };
}
