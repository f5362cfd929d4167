/**
 * The entrance for programs that know nothing of proxies. DNS inside is answered here: a name that a rule may allow gets an
 * address of the sandbox's own loopback, porter listens there on the allowed ports, and the address at which a connection arrives
 * says which name was meant. Every other name does not exist, at once, and nothing of the question leaves this machine.
 */

import type { Duplex } from 'node:stream';
import { parseHost } from '../policy/egress/host.ts';
import { portsFor } from '../policy/egress/policy.ts';
import type { KnownListener, Listener } from '../porter/listener.ts';
import type { Porter } from '../porter/porter.ts';
import { boxHostname } from '../protocol/box.ts';
import { isSallyportError } from '../protocol/errors.ts';
import type { Attempt } from './contract.ts';
import {
  answerCode,
  type Question,
  questionType,
  readQuestion,
  writeAnswer,
  writeRefusal,
} from './dns-message.ts';
import type { EntranceBudget } from './entrance-budget.ts';
import type { GateSession } from './session.ts';
import type { SyntheticNames } from './synthetic-names.ts';

export const dnsPlace = { host: '127.0.0.1', port: 53 } as const;

export interface TransparentParts {
  readonly session: GateSession;
  readonly names: SyntheticNames;
  readonly budget: EntranceBudget;
  readonly serve: (client: Duplex, name: string, port: number) => void;
  readonly note: (code: string, message: string) => void;
  readonly report: (what: string, error: unknown) => void;
}

interface Place {
  readonly listening: Promise<Listener | undefined>;
  usedMs: number;
  open: number;
}

/** porter has 64 listeners in all, and others need some as well. */
const mostPlaces = 48;
const idleMs = 5 * 60_000;
const sweepMs = 60_000;

export class TransparentEntrance {
  readonly #parts: TransparentParts;
  readonly #places = new Map<string, Place>();
  #porter: Porter | undefined;
  #sweep: NodeJS.Timeout | undefined;

  constructor(parts: TransparentParts) {
    this.#parts = parts;
  }

  /** Goes on with the listeners of an earlier connection, or daemon. */
  async connected(porter: Porter, known: readonly KnownListener[]): Promise<void> {
    this.#porter = porter;
    this.#places.clear();
    for (const listener of known) this.#resume(porter, listener);
    const question = (message: Buffer): Promise<Buffer | undefined> => this.#answer(message);
    const dns = known.find(({ kind, port }) => kind === 'dns' && port === dnsPlace.port);
    if (dns === undefined) await porter.listenDns(dnsPlace, question);
    else porter.resumeDns(dns, question);
    this.#sweep ??= setInterval(() => this.#releaseIdle(), sweepMs).unref();
  }

  close(): void {
    clearInterval(this.#sweep);
    this.#sweep = undefined;
    this.#porter = undefined;
    this.#places.clear();
  }

  #resume(porter: Porter, known: KnownListener): void {
    const name = known.kind === 'tcp' ? this.#parts.names.nameAt(known.address) : undefined;
    if (name === undefined) return;
    const place: Place = {
      listening: Promise.resolve(
        porter.resumeListener(known, (tunnel) => this.#arrived(tunnel, place, name, known.port)),
      ),
      usedMs: performance.now(),
      open: 0,
    };
    this.#places.set(`${known.address}:${known.port}`, place);
  }

  async #answer(message: Buffer): Promise<Buffer | undefined> {
    await this.#parts.budget.question();
    const question = readQuestion(message);
    if (question === undefined) return undefined;
    if (typeof question === 'number') return writeRefusal(message, question);
    if (!question.isInternet || question.type === questionType.any) {
      return writeAnswer(question, answerCode.notImplemented);
    }
    const read = question.name === undefined ? undefined : parseHost(question.name);
    if (read === undefined || 'problem' in read || read.isAddress) {
      return writeAnswer(question, answerCode.unknownName);
    }
    // Programs ask for the name of the machine that they are on: it is no attempt to leave.
    if (read.host === 'localhost' || read.host === boxHostname)
      return writeAnswer(question, answerCode.ok, localhost[question.type]);
    const usable = portsFor(this.#parts.session.policy, read);
    if (usable === undefined) {
      this.#reportUnknown(question, read.host);
      return writeAnswer(question, answerCode.unknownName);
    }
    if (question.type !== questionType.a) return writeAnswer(question, answerCode.ok);
    if (!this.#parts.names.has(read.host)) await this.#parts.budget.newName();
    const address = this.#parts.names.addressOf(read.host, usable.isWildcard ? usable.rule : undefined);
    if (address === undefined) {
      this.#parts.note('egress_too_many_names', `${read.host} got no address: too many names were asked for`);
      return writeAnswer(question, answerCode.unknownName);
    }
    await Promise.all(usable.ports.map((port) => this.#provide(address, port, read.host)));
    return writeAnswer(question, answerCode.ok, address);
  }

  /** Once for the two questions that programs ask. */
  #reportUnknown({ type }: Question, host: string): void {
    if (type !== questionType.a) return;
    const { session } = this.#parts;
    const attempt: Attempt = {
      entrance: 'transparent',
      destination: { host, port: 443, isAddress: false },
      scheme: 'https',
    };
    const decision = session.decide(attempt);
    if (decision.allowed) return;
    const named = { ...decision, attempt: { ...attempt, destination: { host, port: 0, isAddress: false } } };
    session.report({ decision: named, bytesOut: 0, bytesIn: 0, durationMs: 0 });
  }

  async #provide(address: string, port: number, name: string): Promise<void> {
    const key = `${address}:${port}`;
    const known = this.#places.get(key);
    if (known !== undefined) {
      known.usedMs = performance.now();
      await known.listening;
      return;
    }
    const porter = this.#porter;
    if (porter === undefined || !this.#makeRoom()) return;
    const place: Place = {
      listening: porter
        .listen({ host: address, port }, (tunnel) => this.#arrived(tunnel, place, name, port))
        .catch((error: unknown) => {
          this.#places.delete(key);
          this.#couldNot(error, name, port);
          return undefined;
        }),
      usedMs: performance.now(),
      open: 0,
    };
    this.#places.set(key, place);
    await place.listening;
  }

  #arrived(client: Duplex, place: Place, name: string, port: number): void {
    place.open++;
    place.usedMs = performance.now();
    client.once('close', () => {
      place.open--;
      place.usedMs = performance.now();
    });
    this.#parts.serve(client, name, port);
  }

  /** A program inside that listens on all addresses has the port, or porter has too many listeners. */
  #couldNot(error: unknown, name: string, port: number): void {
    if (!isSallyportError(error, 'listen_failed')) {
      this.#parts.report(`listen for ${name}`, error);
      return;
    }
    const message = `${name}:${port} cannot be reached by name: ${error.message}; a proxy setting still works`;
    this.#parts.note('egress_port_busy', message);
  }

  #makeRoom(): boolean {
    if (this.#places.size < mostPlaces) return true;
    const idle = [...this.#places].filter(([, { open }]) => open === 0);
    const oldest = idle.sort(([, a], [, b]) => a.usedMs - b.usedMs)[0];
    if (oldest === undefined) return false;
    this.#release(oldest[0], oldest[1]);
    return true;
  }

  #releaseIdle(): void {
    const before = performance.now() - idleMs;
    for (const [key, place] of this.#places) {
      if (place.open === 0 && place.usedMs < before) this.#release(key, place);
    }
  }

  #release(key: string, { listening }: Place): void {
    this.#places.delete(key);
    listening.then((listener) => listener?.close()).catch(() => {});
  }
}

const localhost: Readonly<Record<number, string>> = {
  [questionType.a]: '127.0.0.1',
  [questionType.aaaa]: '::1',
};
