/** A gate session for tests on loopback: names are given ports of this machine, rules are a function, outcomes are kept. */

import net, { type AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { onTestFinished } from 'vitest';
import type { Allowed, Attempt, Decision, EgressSession, Outcome } from '../../src/gate/contract.ts';
import { type RelayOptions, relayHttp } from '../../src/gate/http/relay.ts';
import { readClientHello } from '../../src/gate/tls/client-hello.ts';
import { type InterceptOptions, interceptTls } from '../../src/gate/tls/intercept.ts';

export interface LoopbackRules {
  /** Where each allowed name really is. A name that is not here is denied. */
  readonly ports: Readonly<Record<string, number>>;
  readonly denies?: (attempt: Attempt) => boolean;
  readonly inspects?: boolean;
}

export class LoopbackSession implements EgressSession {
  readonly sandbox = 'box';
  readonly outcomes: Outcome[] = [];
  readonly dialled: string[] = [];
  readonly #rules: LoopbackRules;

  constructor(rules: LoopbackRules) {
    this.#rules = rules;
  }

  decide(attempt: Attempt): Decision {
    const { host } = attempt.destination;
    if (this.#rules.ports[host] !== undefined && this.#rules.denies?.(attempt) !== true) {
      return { allowed: true, attempt, rule: host, inspect: this.#rules.inspects ?? false };
    }
    return {
      allowed: false,
      attempt,
      code: 'not_allowed',
      reason: `no rule allows ${host}`,
      advice: `sally net allow box ${host}`,
    };
  }

  async dial(decision: Allowed): Promise<Duplex> {
    const { host } = decision.attempt.destination;
    const socket = net.connect(this.#rules.ports[host] ?? 0, '127.0.0.1');
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    this.dialled.push(host);
    return socket;
  }

  report(outcome: Outcome): void {
    this.outcomes.push(outcome);
  }
}

/** On a free port of the loopback interface, until the test ends. */
export async function listen(server: net.Server): Promise<number> {
  const open = new Set<net.Socket>();
  server.on('connection', (socket: net.Socket) => {
    open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    for (const socket of open) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

/** A plain entrance of the gate on a port of this machine. */
export async function listenRelay(
  session: EgressSession,
  options: Omit<RelayOptions, 'signal'>,
  signal: AbortSignal = new AbortController().signal,
): Promise<number> {
  const server = net.createServer({ allowHalfOpen: true }, (client) => {
    void relayHttp(client, session, { ...options, signal });
  });
  return await listen(server);
}

/** The proxy entrance with every CONNECT opened: what the gate does where a rule needs to see inside. */
export async function listenIntercepting(
  session: EgressSession,
  options: Omit<InterceptOptions, 'signal' | 'decision' | 'authority'>,
): Promise<number> {
  const { signal } = new AbortController();
  return await listenRelay(session, {
    entrance: 'connect',
    scheme: 'http',
    ...options,
    onConnect: async (authority, client, head) => {
      const decision = session.decide({ entrance: 'connect', destination: authority, scheme: 'https' });
      if (!decision.allowed) {
        client.end('HTTP/1.1 403 Forbidden\r\n\r\n');
        return;
      }
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.unshift(head);
      const hello = await readClientHello(client);
      if ('notTls' in hello) client.destroy();
      else await interceptTls(client, hello, session, { ...options, decision, authority, signal });
    },
  });
}

/** A connection through the proxy on `port`, open to `target`. */
export async function connectThrough(port: number, target: string): Promise<net.Socket> {
  const socket = net.connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  await new Promise<void>((resolve, reject) => socket.once('data', () => resolve()).once('error', reject));
  return socket;
}

/** Sends bytes as they are and gives what came back until the other side closed, or until it has `enough`. */
export async function talk(
  port: number,
  bytes: string | readonly string[],
  enough: (text: string) => boolean = () => false,
): Promise<string> {
  const socket = net.connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  const pieces = typeof bytes === 'string' ? [bytes] : bytes;
  socket.setNoDelay(true);
  for (const piece of pieces) socket.write(piece, 'latin1');
  return await new Promise((resolve, reject) => {
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      if (enough(text)) {
        socket.destroy();
        resolve(text);
      }
    });
    socket.on('end', () => resolve(text));
    socket.on('error', reject);
  });
}
