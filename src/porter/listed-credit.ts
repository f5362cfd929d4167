/**
 * Room for input that porter tells of after it has listed an exec, and before anyone here resumes that exec: lost, it would
 * be missing for as long as the exec lives. Kept for what the last list named and for nothing else, so that its size is bounded.
 */

import type { KnownExec } from './porter.ts';

export class ListedCredit {
  /** In all, since the exec was first listed. */
  #given: ReadonlyMap<number, { bytes: number }> = new Map();
  readonly #givenBefore = new WeakMap<KnownExec, number>();

  listed(list: readonly KnownExec[]): void {
    const before = this.#given;
    this.#given = new Map(list.map(({ stream }) => [stream, before.get(stream) ?? { bytes: 0 }]));
    for (const known of list) this.#givenBefore.set(known, this.#given.get(known.stream)?.bytes ?? 0);
  }

  add(stream: number, bytes: number): void {
    const given = this.#given.get(stream);
    if (given !== undefined) given.bytes += bytes;
  }

  /** How much may be sent to it now. */
  of(known: KnownExec): number {
    const bytes = this.#given.get(known.stream)?.bytes ?? 0;
    return known.inputCredit + bytes - (this.#givenBefore.get(known) ?? bytes);
  }
}
