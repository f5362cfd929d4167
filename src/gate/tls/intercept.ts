/**
 * TLS opened where a rule needs it: the gate is the server to the client, by a leaf of the sandbox's CA, and a client to the
 * server, whose certificate it verifies. Inside, every request is judged as in plain HTTP. It never opens what no rule needs.
 */

import { setMaxListeners } from 'node:events';
import type { Duplex } from 'node:stream';
import tls from 'node:tls';
import type { Allowed, Destination, EgressSession } from '../contract.ts';
import type { RequestCredentials } from '../http/credential-port.ts';
import { relayHttp } from '../http/relay.ts';
import { tlsBufferBytes, type UpstreamTls } from '../http/upstream.ts';
import type { UpstreamPool } from '../http/upstream-pool.ts';
import type { RequestBudget } from '../request-budget.ts';
import { type ClientHello, serverNameProblem } from './client-hello.ts';
import { serveHttp2 } from './http2.ts';
import type { SandboxAuthority } from './sandbox-authority.ts';

export interface InterceptOptions {
  readonly decision: Allowed;
  readonly authority: Destination;
  readonly ca: SandboxAuthority;
  readonly credentials?: RequestCredentials;
  readonly upstreamTls?: UpstreamTls;
  readonly pool?: UpstreamPool;
  readonly budget?: RequestBudget;
  readonly signal: AbortSignal;
}

const handshakeMs = 15_000;

/** Resolves when the connection is over. `client` is as after `readClientHello`: its first bytes are in `hello`. */
export async function interceptTls(
  client: Duplex,
  hello: ClientHello,
  session: EgressSession,
  options: InterceptOptions,
): Promise<void> {
  const { authority, ca, signal, decision } = options;
  setMaxListeners(0, signal);
  const problem = serverNameProblem(hello, authority);
  client.unshift(hello.bytes);
  const settings: tls.TLSSocketOptions & { readonly highWaterMark: number } = {
    isServer: true,
    secureContext: ca.contextFor(authority.host),
    ALPNProtocols: options.budget?.isCalmed === true ? ['http/1.1'] : ['h2', 'http/1.1'],
    highWaterMark: tlsBufferBytes,
  };
  const socket = new tls.TLSSocket(client, settings);
  // Nobody listens to it any more once the connection is over, and an error without a listener ends the process.
  socket.on('error', () => {});
  const from = performance.now();
  const unused = (durationMs: number, what: string): void => {
    const error = `${what}: it may not trust the CA of its sandbox`;
    session.report({ decision, bytesOut: 0, bytesIn: 0, durationMs, error });
  };
  try {
    await handshake(socket, client, signal);
  } catch (error) {
    client.destroy();
    const why = error instanceof Error ? error.message : String(error);
    unused(performance.now() - from, `the client broke off TLS (${why})`);
    return;
  }
  let requests = 0;
  const judge = reporting(
    problem === undefined ? session : refusing(session, problem.code, problem.reason),
    () => requests++,
  );
  const inside = { ...options, entrance: decision.attempt.entrance, scheme: 'https' } as const;
  if (socket.alpnProtocol === 'h2') await serveHttp2(socket, judge, inside);
  else await relayHttp(socket, judge, inside);
  client.destroy();
  // Many clients finish the handshake first and judge the certificate then.
  if (requests === 0) unused(performance.now() - from, 'the client closed TLS without a request');
}

const reporting = (session: EgressSession, counted: () => void): EgressSession => ({
  sandbox: session.sandbox,
  decide: (attempt) => session.decide(attempt),
  dial: (decision, signal) => session.dial(decision, signal),
  report: (outcome) => {
    counted();
    session.report(outcome);
  },
});

function handshake(socket: tls.TLSSocket, client: Duplex, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      for (const [name, listener] of watched) socket.off(name, listener);
      client.off('close', onClose);
      act();
    };
    const fail = (error: Error): void => settle(() => reject(error));
    const onAbort = (): void => fail(new Error('the gate closed the connection'));
    const onClose = (): void => fail(new Error('the connection closed'));
    const watched = [
      ['secure', () => settle(resolve)],
      ['error', fail],
      ['end', onClose],
      ['close', onClose],
    ] as const;
    const timer = setTimeout(() => fail(new Error('the handshake took too long')), handshakeMs);
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    for (const [name, listener] of watched) socket.once(name, listener);
    client.once('close', onClose);
  });
}

/** The handshake is finished all the same, so that the client is told why in words and not by an alert. */
function refusing(session: EgressSession, code: string, reason: string): EgressSession {
  return {
    sandbox: session.sandbox,
    decide: (attempt) => ({
      allowed: false,
      attempt,
      code,
      reason,
      advice: 'Connect to the server by the name that its URL has.',
    }),
    dial: () => Promise.reject(new Error('a refused connection is never dialled')),
    report: (outcome) => session.report(outcome),
  };
}
