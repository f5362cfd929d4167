/**
 * The values that servers may know, by host, of all sandboxes of a daemon. A value stays here for the life of the daemon once it may
 * have been put in for a host: also after a rotation, a removal, and when the secret is bound elsewhere. One mask serves all answers
 * of a host and learns each value before it leaves, so a stream that was opened before a rotation masks what comes after it.
 */

import type { AnswerMask } from '../http/credential-port.ts';
import { MaskedAnswers } from './answer-mask.ts';
import { FormAutomaton } from './form-automaton.ts';
import { formsOf, type Places } from './secret-forms.ts';

export interface KnownValue {
  readonly host: string;
  readonly secret: string;
  readonly value: string;
}

/** Of one secret at one host; the oldest is forgotten. */
const mostValues = 64;

export class KnownValues {
  readonly #hosts = new Map<string, HostValues>();
  readonly #places: Places = new Map();
  readonly #learned: (known: KnownValue) => void;

  /** `learned` is called with each value that was not known before. */
  constructor(learned: (known: KnownValue) => void = () => {}) {
    this.#learned = learned;
  }

  /** SECURITY: before the value leaves for the host, so that no answer can have it unmasked. */
  learn(known: KnownValue): void {
    if (this.#host(known.host).learn(known)) this.#learned(known);
  }

  /** Whether a value of one of these secrets may be known there. */
  has(host: string, secrets: readonly string[]): boolean {
    return this.#hosts.get(host)?.all.some(({ secret }) => secrets.includes(secret)) ?? false;
  }

  knows(host: string): boolean {
    return this.#hosts.has(host);
  }

  /** Masks what is known now, and what becomes known while an answer passes. */
  maskOf(host: string): AnswerMask {
    return this.#host(host).mask;
  }

  /** Oldest first. */
  all(): readonly KnownValue[] {
    return [...this.#hosts.values()].flatMap(({ all }) => all);
  }

  #host(host: string): HostValues {
    const known = this.#hosts.get(host) ?? new HostValues(this.#places);
    this.#hosts.set(host, known);
    return known;
  }
}

class HostValues {
  readonly mask: AnswerMask = new MaskedAnswers(this);
  /** By secret and value, those that came or were used last at the end. */
  readonly #values = new Map<string, KnownValue>();
  readonly #places: Places;
  #automaton: FormAutomaton | undefined;

  constructor(places: Places) {
    this.#places = places;
  }

  get all(): readonly KnownValue[] {
    return [...this.#values.values()];
  }

  get current(): FormAutomaton {
    if (this.#automaton === undefined) {
      const values = new Set(this.all.map(({ value }) => value));
      this.#automaton = new FormAutomaton(formsOf([...values], this.#places));
    }
    return this.#automaton;
  }

  /** False: it was known. */
  learn(known: KnownValue): boolean {
    const key = `${known.secret} ${known.value}`;
    const isNew = !this.#values.delete(key);
    this.#values.set(key, known);
    if (!isNew) return false;
    const own = [...this.#values].filter(([, { secret }]) => secret === known.secret);
    for (const [oldest] of own.slice(0, -mostValues)) this.#values.delete(oldest);
    this.#automaton = undefined;
    return true;
  }
}
