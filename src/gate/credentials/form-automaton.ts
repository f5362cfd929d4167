/**
 * One automaton over bytes for all forms of all values: one step a byte, whatever the number of forms. Its states are sets of
 * places in forms, made when text first leads to them and kept up to a limit, so that memory is bounded and text that has
 * nothing of a value in it costs one look into a table for each byte.
 *
 * `feed` reports where matches end. The start of one is found backwards, which costs as much as the match is long and is done
 * once for each stretch of that length.
 */

import type { Form } from './secret-forms.ts';
import type { Spelling } from './spelling-graph.ts';

interface KnownPlace {
  readonly form: number;
  readonly isLast: boolean;
  readonly spelling: Spelling;
}

/** Where a stream is in the automaton. */
export interface State {
  readonly id: number;
  /** Places and nodes within them, each as one number. */
  readonly members: readonly number[];
  /** Forms that are complete here. */
  readonly complete: readonly number[];
}

export type Matched = (form: number, end: number) => void;

/** A member is a place times this, plus a node. */
const mostNodes = 4096;
const firstRows = 64;
/** Numbers of rows, and their negatives, are kept in 16 bits: a full table takes 8 MiB. */
const mostRows = 16_384;
const mostMembers = 2 ** 20;
const unknown = -1;

export class FormAutomaton {
  /** The longest text that one match may have, wrapped lines apart. */
  readonly longestBytes: number;
  readonly #forms: readonly Form[];
  readonly #places: KnownPlace[] = [];
  readonly #firstPlaces: number[] = [];
  #states: State[] = [];
  #byKey = new Map<string, State>();
  #members = 0;
  /** 256 entries a state: the next one; below `unknown`: one in which a form is complete. */
  #table = new Int16Array(firstRows * 256);

  constructor(forms: readonly Form[]) {
    this.#forms = forms;
    let longestBytes = 0;
    for (const [form, places] of forms.entries()) {
      this.#firstPlaces.push(this.#places.length);
      let bytes = 0;
      for (const [at, place] of places.entries()) {
        this.#places.push({ form, spelling: place.spelling, isLast: at === places.length - 1 });
        bytes += place.longestBytes;
      }
      longestBytes = Math.max(longestBytes, bytes);
    }
    this.longestBytes = longestBytes;
    this.#forget();
  }

  /** A match of this form is never shorter. */
  shortestBytes(form: number): number {
    return this.#forms[form]?.length ?? 0;
  }

  /** From `state`, over `data` from `from` on. Returns the state after it; undefined is the first one. */
  feed(state: State | undefined, data: Buffer, from: number, matched: Matched): State | undefined {
    let at = state === undefined ? 0 : this.#revive(state).id;
    let table = this.#table;
    for (let index = from; index < data.length; index++) {
      const byte = data[index] ?? 0;
      const next = table[(at << 8) | byte] ?? unknown;
      if (next >= 0) {
        at = next;
        continue;
      }
      const reached = next === unknown ? this.#step(at, byte) : this.#states[-next - 2];
      table = this.#table;
      at = reached?.id ?? 0;
      for (const form of reached?.complete ?? []) matched(form, index + 1);
    }
    return this.#states[at];
  }

  /** Where the match of `form` begins that ends before `end`. One that began before `data` counts from 0. */
  startOf(form: number, data: Buffer, end: number): number {
    const first = this.#firstPlaces[form] ?? 0;
    const last = first + (this.#forms[form]?.length ?? 0) - 1;
    let place = last;
    let at = end;
    while (place >= first && at > 0) {
      const byte = data[at - 1] ?? 0;
      if (byte !== 0 && !this.#places[place]?.spelling.single.has(byte)) break;
      if (byte !== 0) place--;
      at--;
    }
    return place < first || at === 0 ? at : this.#startOfEscaped(first, last, data, end);
  }

  /** One escape may look like the end of another, so all readings are followed; the longest counts. */
  #startOfEscaped(first: number, last: number, data: Buffer, end: number): number {
    let members: ReadonlySet<number> = new Set(this.#ends(last));
    let start = end;
    for (let at = end - 1; at >= 0 && members.size > 0; at--) {
      const byte = data[at] ?? 0;
      if (byte === 0) continue;
      const reached = new Set<number>();
      for (const member of members) {
        const place = Math.floor(member / mostNodes);
        const known = this.#places[place];
        for (const { id } of known?.spelling.nodes[member % mostNodes]?.before.get(byte) ?? []) {
          if (id > 0) reached.add(place * mostNodes + id);
          else if (place === first) start = at;
          else for (const one of this.#ends(place - 1)) reached.add(one);
          if (id === 0) for (const one of known?.spelling.skips ?? []) reached.add(place * mostNodes + one);
        }
      }
      if (at === 0 && reached.size > 0) start = 0;
      members = reached;
    }
    return start;
  }

  #ends(place: number): readonly number[] {
    return (this.#places[place]?.spelling.ends ?? []).map((id) => place * mostNodes + id);
  }

  #forget(): void {
    this.#states = [];
    this.#byKey = new Map();
    this.#members = 0;
    this.#table = new Int16Array(firstRows * 256);
    this.#known([], []);
  }

  /** A state of another stream, or of before `#forget`, by what it stands for. */
  #revive(state: State): State {
    return this.#states[state.id] === state ? state : this.#known(state.members, state.complete);
  }

  #step(from: number, byte: number): State {
    const reached = new Set<number>();
    const complete = new Set<number>();
    const members = this.#states[from]?.members ?? [];
    if (byte === 0) {
      // Texts in UTF-16 and UTF-32 are those in ASCII with zeros between: a zero changes nothing.
      for (const member of members) reached.add(member);
    } else {
      for (const place of this.#firstPlaces) this.#advance(place * mostNodes, byte, reached, complete);
      for (const member of members) this.#advance(member, byte, reached, complete);
    }
    const sorted = [...reached].sort((a, b) => a - b);
    const isFull = this.#states.length >= mostRows || this.#members > mostMembers;
    if (isFull) this.#forget();
    const state = this.#known(sorted, [...complete]);
    if (!isFull) this.#table[(from << 8) | byte] = state.complete.length > 0 ? -state.id - 2 : state.id;
    return state;
  }

  #advance(member: number, byte: number, reached: Set<number>, complete: Set<number>): void {
    const at = Math.floor(member / mostNodes);
    const place = this.#places[at];
    const node = place?.spelling.nodes[member % mostNodes]?.next.get(byte);
    if (place === undefined || node === undefined) return;
    if (node.next.size > 0) reached.add(at * mostNodes + node.id);
    if (node.skips) reached.add(at * mostNodes);
    if (!node.ends) return;
    if (place.isLast) complete.add(place.form);
    else reached.add((at + 1) * mostNodes);
  }

  #known(members: readonly number[], complete: readonly number[]): State {
    const key = `${members.join(' ')},${complete.join(' ')}`;
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    const state: State = { id: this.#states.length, members, complete };
    this.#states.push(state);
    this.#byKey.set(key, state);
    this.#members += members.length + 1;
    if (this.#states.length * 256 > this.#table.length) {
      const larger = new Int16Array(this.#table.length * 2);
      larger.set(this.#table);
      this.#table = larger;
    }
    this.#table.fill(unknown, state.id * 256, state.id * 256 + 256);
    return state;
  }
}
