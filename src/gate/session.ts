/**
 * The gate as one sandbox has it: decides by the rules that hold now, dials what was decided, keeps an account of what is
 * open. New rules hold at once, also for connections that are open.
 */

import type { Duplex } from 'node:stream';
import { type Address, parseAddress } from '../policy/egress/address.ts';
import { parseBareHost } from '../policy/egress/host.ts';
import { type EgressPolicy, type Judgement, judge, judgeAddress } from '../policy/egress/policy.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { Allowed, Attempt, Decision, Denied, Destination, EgressSession, Outcome } from './contract.ts';
import { dialAddresses, dialByProxy, type UpstreamProxy } from './dial.ts';
import type { NameResolver } from './resolver.ts';

export interface SessionParts {
  readonly sandbox: string;
  readonly policy: EgressPolicy;
  /** Absent: straight to the address. */
  readonly proxy: ((signal: AbortSignal) => Promise<UpstreamProxy>) | undefined;
  readonly resolver: NameResolver;
  /** Some secret is bound to it: TLS has to be opened, and no tunnel is joined before its first bytes were seen. */
  readonly needsInspection: (destination: Destination) => boolean;
  readonly written: (outcome: Outcome) => void;
}

interface OpenConnection {
  readonly attempt: Attempt;
  readonly address: Address | undefined;
}

export class GateSession implements EgressSession {
  readonly sandbox: string;
  readonly #parts: SessionParts;
  readonly #open = new Map<Duplex, OpenConnection>();
  /** Decisions that came to nothing when the name was resolved. */
  readonly #deniedLater = new WeakMap<Allowed, Denied>();
  #policy: EgressPolicy;

  constructor(parts: SessionParts) {
    this.sandbox = parts.sandbox;
    this.#parts = parts;
    this.#policy = parts.policy;
  }

  get policy(): EgressPolicy {
    return this.#policy;
  }

  decide(attempt: Attempt): Decision {
    const judged = isCanonical(attempt.destination) ? judge(this.#policy, attempt) : notCanonical;
    if (!judged.allowed) return this.#denied(attempt, judged);
    const inspect = judged.inspect || this.#parts.needsInspection(attempt.destination);
    return { allowed: true, attempt, rule: judged.rule, inspect, byRequest: judged.byRequest === true };
  }

  async dial(decision: Allowed, signal: AbortSignal): Promise<Duplex> {
    const { destination } = decision.attempt;
    const { proxy } = this.#parts;
    try {
      const addresses = await this.#addresses(destination, signal);
      const judged = addresses.map((address) => judgeAddress(this.#policy, destination, address));
      const denial = judged.find((each) => each !== undefined);
      if (denial !== undefined) throw this.#refusal(decision.attempt, denial);
      if (proxy !== undefined) {
        return this.#keep(await dialByProxy(proxy, destination, signal), decision.attempt, undefined);
      }
      const { socket, address } = await dialAddresses(addresses, destination, signal);
      return this.#keep(socket, decision.attempt, address);
    } catch (error) {
      if (isSallyportError(error, 'egress_denied'))
        this.#deniedLater.set(decision, deniedBy(decision.attempt, error));
      throw error;
    }
  }

  report(outcome: Outcome): void {
    const { decision } = outcome;
    const later = decision.allowed ? this.#deniedLater.get(decision) : undefined;
    this.#parts.written(later === undefined ? outcome : { ...outcome, decision: later });
  }

  /** Returns how many connections were closed, because nothing allows them any more. */
  change(policy: EgressPolicy): number {
    this.#policy = policy;
    let closed = 0;
    for (const [socket, { attempt, address }] of this.#open) {
      const isAddressDenied =
        address !== undefined && judgeAddress(policy, attempt.destination, address) !== undefined;
      if (this.decide(attempt).allowed && !isAddressDenied) continue;
      closed++;
      socket.destroy(new SallyportError('egress_denied', 'the rules were changed'));
    }
    return closed;
  }

  closeAll(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }

  /** An upstream resolves names itself; what is an address already is judged here in any case. */
  async #addresses({ host, isAddress }: Destination, signal: AbortSignal): Promise<readonly Address[]> {
    const { proxy, resolver } = this.#parts;
    const literal = isAddress ? parseAddress(host) : undefined;
    if (literal !== undefined) return [literal];
    return proxy === undefined ? await resolver.resolve(host, signal) : [];
  }

  /** The rules may have changed while it was dialled. */
  #keep(socket: Duplex, attempt: Attempt, address: Address | undefined): Duplex {
    socket.on('error', () => {});
    const decided = this.decide(attempt);
    if (!decided.allowed) {
      socket.destroy();
      throw new SallyportError('egress_denied', decided.reason, {
        details: { code: decided.code, host: attempt.destination.host, port: attempt.destination.port },
        advice: decided.advice,
      });
    }
    this.#open.set(socket, { attempt, address });
    socket.once('close', () => this.#open.delete(socket));
    return socket;
  }

  #denied(attempt: Attempt, judged: Extract<Judgement, { allowed: false }>): Denied {
    const { code, reason } = judged;
    return { allowed: false, attempt, code, reason, advice: this.#advice(attempt, judged) };
  }

  #advice({ destination, scheme }: Attempt, { code, rule }: Extract<Judgement, { allowed: false }>): string {
    const { host, port } = destination;
    const shown = host.includes(':') ? `[${host}]` : host;
    const allow = `sally net allow ${this.sandbox} `;
    switch (code) {
      case 'denied_by_rule':
        return `A rule denies it (${rule ?? ''}), and a deny wins over every allow.`;
      case 'tcp_not_allowed':
        return `${allow}${shown}:${port}/tcp`;
      case 'port_not_allowed':
        return `${allow}${shown}:${port}${scheme === 'tcp' ? '/tcp' : ''}`;
      case 'private_address':
        return `Only a rule that names the range of addresses opens it: ${allow}<address>:${port}`;
      case 'request_not_allowed':
      case 'ambiguous_path':
        return 'Change the methods or paths of the rule.';
      default:
        return `${allow}${shown}${port === 443 || port === 80 || port === 0 ? '' : `:${port}`}`;
    }
  }

  #refusal(attempt: Attempt, judged: Extract<Judgement, { allowed: false }>): SallyportError {
    const { host, port } = attempt.destination;
    return new SallyportError('egress_denied', judged.reason, {
      details: { code: judged.code, host, port },
      advice: this.#advice(attempt, judged),
    });
  }
}

/** SECURITY: whoever read it, what is judged, resolved and dialled is in the one form that the rules are written for. */
function isCanonical({ host, isAddress, port }: Destination): boolean {
  const read = parseBareHost(host);
  if ('problem' in read || !Number.isInteger(port) || port < 0 || port > 65535) return false;
  return read.host === host && read.isAddress === isAddress;
}

const notCanonical = {
  allowed: false,
  code: 'not_allowed',
  reason: 'this is no host and port in its one form',
} as const;

export function deniedBy(attempt: Attempt, error: SallyportError): Denied {
  const code = String(error.details['code'] ?? 'denied');
  return { allowed: false, attempt, code, reason: error.message, advice: error.advice };
}
