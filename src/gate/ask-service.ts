/**
 * Whether a service takes a token, asked as the gate would ask: the host that the token is bound to and no other, by HTTPS
 * with a certificate that is trusted here. No redirect is followed, and nothing of the answer but its status is looked at.
 */

import { request } from 'node:http';
import tls from 'node:tls';
import type { SecretBinding } from '../protocol/secrets.ts';
import { dialAddresses } from './dial.ts';
import type { UpstreamTls } from './http/upstream.ts';
import type { NameResolver } from './resolver.ts';

const askMs = 10_000;

type Answer = 'accepted' | 'refused' | { readonly unknown: string };

export function serviceAsker(
  resolver: NameResolver,
  upstreamTls: UpstreamTls,
): (binding: SecretBinding, value: string, signal: AbortSignal) => Promise<Answer> {
  return async (binding, value, signal) => {
    const { port, check_path: path = '/' } = binding;
    const [host = ''] = binding.hosts;
    const until = AbortSignal.any([signal, AbortSignal.timeout(askMs)]);
    try {
      const addresses = await resolver.resolve(host, until);
      const { socket } = await dialAddresses(addresses, { host, port, isAddress: false }, until);
      // Not before: it may be made by this.
      const { context } = upstreamTls;
      const status = await new Promise<number>((resolve, reject) => {
        const asked = request(
          {
            host,
            port,
            path,
            headers: { ...headersFor(binding, value), accept: 'application/json', 'user-agent': 'sallyport' },
            signal: until,
            createConnection: () =>
              tls.connect({
                socket,
                servername: host,
                ALPNProtocols: ['http/1.1'],
                minVersion: 'TLSv1.2',
                ...(context === undefined ? {} : { secureContext: context }),
              }),
          },
          (answer) => {
            answer.destroy();
            resolve(answer.statusCode ?? 0);
          },
        );
        asked.once('error', reject);
        asked.end();
      }).finally(() => socket.destroy());
      return judged(status);
    } catch (error) {
      signal.throwIfAborted();
      return { unknown: until.aborted ? 'it does not answer' : wordsOf(error) };
    }
  };
}

/** A token that is limited for the moment is a good one; what a broken server says is no word about a token. */
function judged(status: number): Answer {
  if (status === 401) return 'refused';
  if ((status >= 200 && status < 300) || status === 429) return 'accepted';
  return { unknown: `it answers with status ${status}` };
}

/** As its programs send it: a token by which somebody logged in goes as Bearer, a key in the header for keys. */
function headersFor({ headers, hosts }: SecretBinding, value: string): Record<string, string> {
  const isLogin = value.startsWith('sk-ant-oat') && headers.includes('authorization');
  const name = isLogin ? 'authorization' : (headers[0] ?? 'authorization');
  return {
    [name]: name === 'authorization' ? `Bearer ${value}` : value,
    ...(hosts[0] === 'api.anthropic.com' ? { 'anthropic-version': '2023-06-01' } : {}),
    ...(isLogin ? { 'anthropic-beta': 'oauth-2025-04-20' } : {}),
  };
}

/** SECURITY: only codes; the text of an error could repeat what was sent. */
function wordsOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? `the connection failed (${code})` : 'the connection failed';
}
