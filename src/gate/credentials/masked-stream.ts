/**
 * Passes a stream on with every form of a value masked by as many stars, so that announced lengths stay true.
 *
 * SECURITY: how long bytes are held back depends on the lengths of the values and on the stream, never on whether bytes look
 * like the start of a value: a delay that did would tell a guess that is right from one that is wrong, character by character.
 */

import { setImmediate } from 'node:timers/promises';
import type { Pauses } from '../http/pauses.ts';
import type { FormAutomaton, State } from './form-automaton.ts';

const star = 0x2a;
const leastHeldBytes = 1024;
/** In the worst case about 50 ms of work. */
const turnBytes = 8 * 1024;

/** The automaton of the values that are known now: another one when a value comes while a stream is open. */
export interface LiveAutomaton {
  readonly current: FormAutomaton;
}

/** Where a reader can use what it has, although more will come. */
export type Boundary = 'event' | 'line' | 'none';

export class Masker {
  readonly #live: LiveAutomaton;
  readonly #boundary: Boundary;
  #automaton: FormAutomaton;
  readonly #lastEnds = new Map<number, number>();
  #state: State | undefined;
  #held: Buffer = Buffer.alloc(0);
  /** The last bytes that went out, as they came. */
  #past: Buffer = Buffer.alloc(0);
  /** Bytes of the stream before `#held`. */
  #offset = 0;
  /** What is to be masked, by offsets of the stream, apart from each other. Held bytes stay as they are, because a longer match may be found. */
  #ranges: Range[] = [];

  constructor(live: LiveAutomaton, boundary: Boundary = 'none') {
    this.#live = live;
    this.#automaton = live.current;
    this.#boundary = boundary;
  }

  /** A power of two that holds the longest form. */
  get #holdBytes(): number {
    return 2 ** Math.ceil(Math.log2(Math.max(leastHeldBytes, this.#automaton.longestBytes)));
  }

  get heldBytes(): number {
    return this.#held.length;
  }

  /** Takes a piece and returns what may go out. */
  push(piece: Buffer): Buffer {
    this.#follow();
    const from = this.#held.length;
    // The piece may be part of a buffer that is still read from, so it is copied before it is masked.
    const data = Buffer.concat([this.#held, piece]);
    this.#held = data;
    this.#state = this.#automaton.feed(this.#state, data, from, (form, end) => this.#mark(form, end));
    return this.#let(Math.max(0, data.length - this.#holdBytes, endOfLast(this.#boundary, data)));
  }

  /** Lets everything go. A value of which the start went out is still masked from here on. */
  flush(): Buffer {
    this.#follow();
    return this.#let(this.#held.length);
  }

  /**
   * SECURITY: what is held may have the start of a value that became known since, so it is searched again, together with what went
   * out before: a value of which the start had to go out is masked from there on.
   */
  #follow(): void {
    const { current } = this.#live;
    if (current === this.#automaton) return;
    this.#automaton = current;
    this.#lastEnds.clear();
    const [held, offset, ranges] = [this.#held, this.#offset, this.#ranges];
    this.#held = Buffer.concat([this.#past, held]);
    this.#offset -= this.#past.length;
    this.#ranges = [];
    this.#state = current.feed(undefined, this.#held, 0, (form, end) => this.#mark(form, end));
    this.#held = held;
    this.#offset = offset;
    this.#ranges = joined([...ranges, ...this.#ranges]);
  }

  #let(bytes: number): Buffer {
    const out = this.#held.subarray(0, bytes);
    const hold = this.#holdBytes;
    this.#past = Buffer.concat(
      out.length < hold ? [this.#past.subarray(out.length - hold), out] : [out.subarray(-hold)],
    );
    for (const { start, end } of this.#ranges) {
      if (start >= this.#offset + bytes) break;
      out.fill(star, Math.max(0, start - this.#offset), Math.min(bytes, end - this.#offset));
    }
    this.#held = this.#held.subarray(bytes);
    this.#offset += bytes;
    if (this.#ranges.length > 0) this.#ranges = this.#ranges.filter(({ end }) => end > this.#offset);
    return out;
  }

  /** A match that overlaps the one before it of the same form begins within that one, which is marked already. */
  #mark(form: number, endHere: number): void {
    const end = this.#offset + endHere;
    const last = this.#lastEnds.get(form) ?? Number.NEGATIVE_INFINITY;
    this.#lastEnds.set(form, end);
    const overlaps = end - last < this.#automaton.shortestBytes(form);
    let start = overlaps ? last : this.#offset + this.#automaton.startOf(form, this.#held, endHere);
    for (let before = this.#ranges.at(-1); before !== undefined; before = this.#ranges.at(-1)) {
      if (before.end < start) break;
      start = Math.min(start, before.start);
      this.#ranges.pop();
    }
    this.#ranges.push({ start, end });
  }
}

interface Range {
  readonly start: number;
  readonly end: number;
}

/** In order, and apart from each other. */
function joined(ranges: readonly Range[]): Range[] {
  const out: Range[] = [];
  for (const range of [...ranges].sort((a, b) => a.start - b.start)) {
    const last = out.at(-1);
    if (last === undefined || last.end < range.start) out.push(range);
    else out[out.length - 1] = { start: last.start, end: Math.max(last.end, range.end) };
  }
  return out;
}

export function maskBytes(bytes: Buffer, automaton: FormAutomaton): Buffer {
  const masker = new Masker({ current: automaton });
  return Buffer.concat([masker.push(bytes), masker.flush()]);
}

/** As `maskBytes`, and others get their turn in between: a message may have many megabytes. */
export async function maskInTurns(bytes: Buffer, live: LiveAutomaton): Promise<Buffer> {
  const masker = new Masker(live);
  const out: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += turnBytes) {
    if (at > 0) await setImmediate();
    out.push(masker.push(bytes.subarray(at, at + turnBytes)));
  }
  return Buffer.concat([...out, masker.flush()]);
}

export const maskText = (text: string, automaton: FormAutomaton): string =>
  maskBytes(Buffer.from(text, 'latin1'), automaton).toString('latin1');

export async function* masked(
  body: AsyncIterable<Buffer>,
  masker: Masker,
  pauses: Pauses,
): AsyncGenerator<Buffer> {
  const pieces = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = pieces.next();
      if ((await pauses.isLong(next)) && masker.heldBytes > 0) yield masker.flush();
      const { done, value } = await next;
      if (done === true) break;
      for (let at = 0; at < value.length; at += turnBytes) {
        if (at > 0) await setImmediate();
        const out = masker.push(value.subarray(at, at + turnBytes));
        if (out.length > 0) yield out;
      }
    }
    if (masker.heldBytes > 0) yield masker.flush();
  } finally {
    // Not waited for: a read that is under way ends with the connection, which is closed after this.
    void pieces.return?.();
  }
}

/** The end of the last whole event or line. */
function endOfLast(boundary: Boundary, data: Buffer): number {
  if (boundary === 'none') return 0;
  const marks = boundary === 'line' ? ['\n'] : ['\n\n', '\r\n\r\n', '\r\r'];
  return Math.max(
    ...marks.map((mark) => {
      const at = data.lastIndexOf(mark, undefined, 'latin1');
      return at < 0 ? 0 : at + mark.length;
    }),
  );
}
