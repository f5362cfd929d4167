/**
 * Whether the rules are really in force, asked from inside as a program would ask: what must not be reached is not, and what must be is.
 * A dead network would pass the first half alone, so both count.
 *
 * What is asked here is asked by us: it is in no log, and it reaches nobody but the hosts that the rules name.
 */

import { randomBytes } from 'node:crypto';
import { Duplex } from 'node:stream';
import type { Rule } from '../policy/egress/rule.ts';
import type { Porter } from '../porter/porter.ts';
import type { VerifyCheck } from '../protocol/views.ts';
import type { Allowed, Attempt, Decision, Destination, EgressSession, Outcome } from './contract.ts';
import { nextChunk, touchProxy, type UpstreamProxy } from './dial.ts';

const askMs = 10_000;
/** Nothing is there, and a connection that is not refused by then goes nowhere. */
const directMs = 1000;
const mostHosts = 8;
/** An address that is nobody's, which no mode opens. */
const nowhere = '240.0.0.1:9';
/** What a cloud answers about its machines, and a resolver that everybody can ask. */
const outside = [
  { host: '169.254.169.254', port: 80 },
  { host: '1.1.1.1', port: 53 },
] as const;

/** The session as it is while we ask: one more name exists, which nobody can guess, and which leads back here. */
export class ProbedSession implements EgressSession {
  readonly name: string;
  readonly #session: EgressSession;

  constructor(session: EgressSession, name: string) {
    this.#session = session;
    this.name = name;
  }

  get sandbox(): string {
    return this.#session.sandbox;
  }

  decide(attempt: Attempt): Decision {
    if (attempt.destination.host !== this.name) return this.#session.decide(attempt);
    return { allowed: true, attempt, rule: 'the probe', inspect: false };
  }

  async dial(decision: Allowed, signal: AbortSignal): Promise<Duplex> {
    return decision.attempt.destination.host === this.name
      ? answering()
      : await this.#session.dial(decision, signal);
  }

  report(outcome: Outcome): void {
    const { host, port } = outcome.decision.attempt.destination;
    if (host !== this.name && `${host}:${port}` !== nowhere) this.#session.report(outcome);
  }
}

/** Nobody can guess it. */
export const probeName = (): string => `${randomBytes(16).toString('hex')}.sallyport.invalid`;

/** A server of one answer. */
function answering(): Duplex {
  return new Duplex({
    read() {},
    write(_chunk, _encoding, done) {
      if (!this.readableEnded) {
        this.push('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok');
        this.push(null);
      }
      done();
    },
  });
}

/** By the proxy inside: its answer's first line, or what went wrong. */
async function askInside(porter: Porter, place: Destination, request: string): Promise<string> {
  const late = AbortSignal.timeout(askMs);
  try {
    const tunnel = await porter.connect(place, { signal: late });
    tunnel.write(request);
    let answer = '';
    for (
      let chunk = await nextChunk(tunnel, late);
      chunk !== undefined;
      chunk = await nextChunk(tunnel, late)
    ) {
      answer += chunk.toString('latin1');
    }
    tunnel.destroy();
    return answer.split('\r\n')[0] ?? '';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Before READY, and by `sally verify`: both halves, at the sandbox's own entrance. */
export async function probeEntrance(
  porter: Porter,
  place: Omit<Destination, 'isAddress'>,
  name: string,
): Promise<readonly VerifyCheck[]> {
  const at = { ...place, isAddress: true };
  const direct = outside.map(async ({ host, port }) => {
    const found = await porter.connect({ host, port }, { timeoutMs: directMs }).then(
      (tunnel) => {
        tunnel.destroy();
        return 'reached';
      },
      () => 'not reached',
    );
    return row(`straight to ${host}:${port}`, 'not reached', found);
  });
  const get = `GET http://${name}/ HTTP/1.1\r\nhost: ${name}\r\nconnection: close\r\n\r\n`;
  const [denied, allowed, ...straight] = await Promise.all([
    askInside(porter, at, `CONNECT ${nowhere} HTTP/1.1\r\nhost: ${nowhere}\r\n\r\n`),
    askInside(porter, at, get),
    ...direct,
  ]);
  return [
    row('a request that nothing allows', 'denied', /^HTTP\/1\.1 403 /.test(denied) ? 'denied' : denied),
    row('a request that is allowed', 'answered', /^HTTP\/1\.1 200 /.test(allowed) ? 'answered' : allowed),
    ...straight,
  ];
}

/** Of `sally verify` alone: the way out, and the hosts that rules name one by one. */
export async function probeOutside(
  session: EgressSession,
  rules: readonly Rule[],
  proxy: ((signal: AbortSignal) => Promise<UpstreamProxy>) | undefined,
): Promise<readonly VerifyCheck[]> {
  const signal = AbortSignal.timeout(askMs);
  const upstream =
    proxy === undefined
      ? []
      : [
          reached(
            'the upstream',
            async () => touchProxy(await proxy(signal), signal),
            'Start it, or name another.',
          ),
        ];
  const hosts = namedHosts(rules).map((destination) =>
    reached(
      `${destination.host}:${destination.port}`,
      async () => {
        const decision = session.decide({ entrance: 'connect', destination, scheme: 'https' });
        const tcp = session.decide({ entrance: 'connect', destination, scheme: 'tcp' });
        const allowed = decision.allowed ? decision : tcp;
        if (!allowed.allowed) throw new Error(`denied: ${allowed.reason}`);
        (await session.dial(allowed, signal)).destroy();
      },
      'It is allowed; see whether it is there, and whether this machine reaches it.',
    ),
  );
  return await Promise.all([...upstream, ...hosts]);
}

/** Wildcards and ranges name no host. */
function namedHosts(rules: readonly Rule[]): readonly Destination[] {
  const named = rules.flatMap(({ pattern, ports }) => {
    if (pattern.kind !== 'name') return [];
    const port = ports === 'any' || ports.includes(443) ? 443 : ports[0];
    return port === undefined ? [] : [{ host: pattern.name, port, isAddress: false }];
  });
  const once = new Map(named.map((destination) => [`${destination.host}:${destination.port}`, destination]));
  return [...once.values()].slice(0, mostHosts);
}

async function reached(name: string, reach: () => Promise<void>, advice: string): Promise<VerifyCheck> {
  const found = await reach().then(
    () => 'reached',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  return { ...row(`reach ${name}`, 'reached', found), ...(found === 'reached' ? {} : { advice }) };
}

function row(name: string, expected: string, found: string): VerifyCheck {
  return { name, expected, found, status: found === expected ? 'ok' : 'failed' };
}
