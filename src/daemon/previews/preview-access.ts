/**
 * Who may look at a port of a sandbox with a browser: one-time tokens, the sessions they are exchanged for, and what of a request shows
 * that it comes from the page itself. Only digests of tokens and sessions are kept.
 */

import { createHash, randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export const previewCookie = 'sallyport_preview';

export class PreviewAccess {
  readonly #now: () => number;
  /** Digest to when it ends, for both. */
  readonly #tokens = new Map<string, number>();
  readonly #sessions = new Map<string, number>();
  readonly #sessionMs: number;

  constructor(now: () => number, sessionMs: number) {
    this.#now = now;
    this.#sessionMs = sessionMs;
  }

  get sessions(): number {
    this.#forgetOld();
    return this.#sessions.size;
  }

  get sessionMs(): number {
    return this.#sessionMs;
  }

  mintToken(livesMs: number): string {
    this.#forgetOld();
    const token = secretText();
    this.#tokens.set(digest(token), this.#now() + livesMs);
    return token;
  }

  /** Once. Undefined: it never was one, was used before, or is too old. */
  exchange(token: string): string | undefined {
    this.#forgetOld();
    if (!this.#tokens.delete(digest(token))) return undefined;
    const session = secretText();
    this.#sessions.set(digest(session), this.#now() + this.#sessionMs);
    return session;
  }

  /** When the session ends that the cookie names. Undefined: there is none. */
  admittedUntilMs(headers: IncomingHttpHeaders): number | undefined {
    this.#forgetOld();
    const session = cookieOf(headers.cookie);
    return session === undefined ? undefined : this.#sessions.get(digest(session));
  }

  #forgetOld(): void {
    const now = this.#now();
    for (const kept of [this.#tokens, this.#sessions]) {
      for (const [key, endsMs] of kept) if (endsMs <= now) kept.delete(key);
    }
  }
}

/**
 * SECURITY: browsers send the cookie with requests of this very site alone (SameSite=Strict). This is for those that do not know
 * better, and for a page that was given the address of this one.
 */
export function isOwnRequest(headers: IncomingHttpHeaders, host: string): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  const { origin } = headers;
  // A page with `Referrer-Policy: no-referrer` sends forms with the origin `null`: then the browser's own word on it has to do.
  return origin === undefined || origin === `http://${host}` || (origin === 'null' && site === 'same-origin');
}

/** What programs inside get to see of the cookies: all but ours. */
export function withoutPreviewCookie(cookie: string): string {
  return cookie
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '' && !pair.startsWith(`${previewCookie}=`))
    .join('; ');
}

function cookieOf(cookie: string | undefined): string | undefined {
  const pairs = (cookie ?? '').split(';').map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${previewCookie}=`))?.slice(previewCookie.length + 1);
}

const secretText = (): string => randomBytes(32).toString('base64url');
const digest = (text: string): string => createHash('sha256').update(text).digest('base64');
