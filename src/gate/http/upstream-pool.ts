/**
 * Connections to servers that a client inside left behind: the next client of the same sandbox need not wait for a name, a
 * connection and a handshake. Whatever goes out on one was judged by itself, as always. Never shared between sandboxes.
 */

import type { Destination } from '../contract.ts';
import type { Headers } from './headers.ts';
import type { Upstream } from './upstream.ts';

/** A server closes idle connections, and rules and certificates change: none rests for long. */
const restMs = 4000;
const mostResting = 32;

export class UpstreamPool {
  /** With what ends the rest of each. */
  readonly #resting = new Map<Upstream, () => void>();
  #closed = false;

  give(upstream: Upstream): void {
    if (this.#closed || !upstream.isShareable || !upstream.usable) {
      upstream.close();
      return;
    }
    const drop = (): void => this.#drop(upstream);
    const timer = setTimeout(drop, restMs).unref();
    upstream.stream.once('close', drop);
    this.#resting.set(upstream, () => {
      clearTimeout(timer);
      upstream.stream.off('close', drop);
      this.#resting.delete(upstream);
    });
    const [oldest] = this.#resting.keys();
    if (this.#resting.size > mostResting && oldest !== undefined) this.#drop(oldest);
  }

  take({ host, port }: Destination, scheme: 'http' | 'https'): Upstream | undefined {
    for (const [upstream, rouse] of this.#resting) {
      const { destination } = upstream;
      if (destination.host !== host || destination.port !== port || upstream.scheme !== scheme) continue;
      rouse();
      if (upstream.usable) return upstream;
      upstream.close();
    }
    return undefined;
  }

  close(): void {
    this.#closed = true;
    for (const upstream of [...this.#resting.keys()]) this.#drop(upstream);
  }

  #drop(upstream: Upstream): void {
    this.#resting.get(upstream)?.();
    upstream.close();
  }
}

/** SECURITY: these log a connection in, and not a request: whoever used it next would have another's rights. */
const bindsConnection = /^(?:ntlm|negotiate|kerberos)\b/i;
const loginFields = ['authorization', 'www-authenticate', 'proxy-authenticate'] as const;

export const leavesNoLogin = (headers: Headers): boolean =>
  !loginFields.some((name) => headers.all(name).some((value) => bindsConnection.test(value.trim())));
