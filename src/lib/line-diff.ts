/**
 * Which lines differ between two texts, by Myers' algorithm in linear space, and the hunks of a unified diff. Lines are
 * bytes. The time is bounded: what would take longer is told as one replaced stretch, which is right and not minimal.
 */

/** Lines `oldStart` to `oldEnd` became lines `newStart` to `newEnd`; ends are exclusive. */
export interface Edit {
  readonly oldStart: number;
  readonly oldEnd: number;
  readonly newStart: number;
  readonly newEnd: number;
}

/** Steps of the search, of which a core does some hundred millions a second. */
const mostSteps = 50_000_000;
const newline = 0x0a;

/** Each line with its end; the last one may have none. */
export function splitLines(text: Buffer): readonly Buffer[] {
  const lines: Buffer[] = [];
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf(newline, from);
    const to = end < 0 ? text.length : end + 1;
    lines.push(text.subarray(from, to));
    from = to;
  }
  return lines;
}

/** How many lines a text has, counted no further than one above `most`. */
export function countLines(text: Buffer, most: number): number {
  let count = 0;
  for (let from = 0; from < text.length && count <= most; count++) {
    const end = text.indexOf(newline, from);
    from = end < 0 ? text.length : end + 1;
  }
  return count;
}

/** Gives equal lines of several texts equal numbers. */
export class LineNumbers {
  readonly #numbers = new Map<string, number>();

  of(lines: readonly Buffer[]): Int32Array {
    return Int32Array.from(lines, (line) => {
      const text = line.toString('latin1');
      const number = this.#numbers.get(text) ?? this.#numbers.size;
      this.#numbers.set(text, number);
      return number;
    });
  }
}

/** `before` and `after`: the numbers of the lines. */
export const lineEdits = (
  before: Int32Array,
  after: Int32Array,
  stepsLeft: number = mostSteps,
): readonly Edit[] => new Search(before, after, stepsLeft).run();

/** A stretch of both texts that is compared. */
interface Box {
  readonly oldStart: number;
  readonly oldEnd: number;
  readonly newStart: number;
  readonly newEnd: number;
}

/** Where a shortest way through a box passes a diagonal of equal lines, relative to the box. */
interface Snake {
  readonly x: number;
  readonly y: number;
  readonly endX: number;
  readonly endY: number;
}

class Search {
  readonly #old: Int32Array;
  readonly #new: Int32Array;
  /** How far each diagonal is reached, from the start and from the end. */
  readonly #forward: Int32Array;
  readonly #backward: Int32Array;
  readonly #edits: Edit[] = [];
  #stepsLeft: number;

  constructor(before: Int32Array, after: Int32Array, stepsLeft: number) {
    this.#old = before;
    this.#new = after;
    this.#stepsLeft = stepsLeft;
    const diagonals = 2 * (before.length + after.length) + 3;
    this.#forward = new Int32Array(diagonals);
    this.#backward = new Int32Array(diagonals);
  }

  run(): readonly Edit[] {
    this.#compare({ oldStart: 0, oldEnd: this.#old.length, newStart: 0, newEnd: this.#new.length });
    return this.#edits;
  }

  #compare(whole: Box): void {
    const box = this.#trimmed(whole);
    const { oldStart, oldEnd, newStart, newEnd } = box;
    if (oldStart === oldEnd && newStart === newEnd) return;
    const snake = oldStart === oldEnd || newStart === newEnd ? undefined : this.#middle(box);
    if (snake === undefined) {
      this.#replace(box);
      return;
    }
    this.#compare({ oldStart, oldEnd: oldStart + snake.x, newStart, newEnd: newStart + snake.y });
    this.#compare({ oldStart: oldStart + snake.endX, oldEnd, newStart: newStart + snake.endY, newEnd });
  }

  #trimmed({ oldStart, oldEnd, newStart, newEnd }: Box): Box {
    let [fromOld, fromNew, toOld, toNew] = [oldStart, newStart, oldEnd, newEnd];
    while (fromOld < toOld && fromNew < toNew && this.#old[fromOld] === this.#new[fromNew]) {
      fromOld++;
      fromNew++;
    }
    while (fromOld < toOld && fromNew < toNew && this.#old[toOld - 1] === this.#new[toNew - 1]) {
      toOld--;
      toNew--;
    }
    return { oldStart: fromOld, oldEnd: toOld, newStart: fromNew, newEnd: toNew };
  }

  #replace(box: Box): void {
    const last = this.#edits.at(-1);
    const touches = last !== undefined && last.oldEnd === box.oldStart && last.newEnd === box.newStart;
    if (touches)
      this.#edits[this.#edits.length - 1] = { ...box, oldStart: last.oldStart, newStart: last.newStart };
    else this.#edits.push(box);
  }

  /** Undefined: it would take too long. Both searches begin at a corner and meet in the middle. */
  #middle({ oldStart, oldEnd, newStart, newEnd }: Box): Snake | undefined {
    const width = oldEnd - oldStart;
    const height = newEnd - newStart;
    const delta = width - height;
    const zero = width + height + 1;
    const [forward, backward] = [this.#forward, this.#backward];
    forward[zero + 1] = 0;
    backward[zero + 1] = 0;
    const most = Math.ceil((width + height) / 2);
    for (let distance = 0; distance <= most; distance++) {
      for (let k = -distance; k <= distance; k += 2) {
        const startX = nextX(forward, zero, k, distance);
        let x = startX;
        let y = x - k;
        while (x < width && y < height && this.#old[oldStart + x] === this.#new[newStart + y]) {
          x++;
          y++;
        }
        forward[zero + k] = x;
        this.#stepsLeft -= 1 + x - startX;
        const met = delta % 2 !== 0 && Math.abs(delta - k) < distance && x <= width && y <= height;
        const other = backward[zero + delta - k] ?? 0;
        if (met && other <= width && x + other >= width)
          return sensible({ x: startX, y: startX - k, endX: x, endY: y }, width, height);
      }
      for (let k = -distance; k <= distance; k += 2) {
        const startX = nextX(backward, zero, k, distance);
        let x = startX;
        let y = x - k;
        while (x < width && y < height && this.#old[oldEnd - 1 - x] === this.#new[newEnd - 1 - y]) {
          x++;
          y++;
        }
        backward[zero + k] = x;
        this.#stepsLeft -= 1 + x - startX;
        const met = delta % 2 === 0 && Math.abs(delta - k) <= distance && x <= width && y <= height;
        const other = forward[zero + delta - k] ?? 0;
        if (met && other <= width && x + other >= width) {
          const found = { x: width - x, y: height - y, endX: width - startX, endY: height - startX + k };
          return sensible(found, width, height);
        }
      }
      if (this.#stepsLeft <= 0) return undefined;
    }
    return undefined;
  }
}

/** One line further than the better neighbour. */
function nextX(reached: Int32Array, zero: number, k: number, distance: number): number {
  const [left = 0, right = 0] = [reached[zero + k - 1], reached[zero + k + 1]];
  return k === -distance || (k !== distance && left < right) ? right : left + 1;
}

/** Only what is inside of the box and makes both halves smaller than it. */
function sensible(snake: Snake, width: number, height: number): Snake | undefined {
  const { x, y, endX, endY } = snake;
  const isInside = x >= 0 && y >= 0 && endX <= width && endY <= height && x <= endX && y <= endY;
  const isWhole = (x === width && y === height) || (endX === 0 && endY === 0);
  return isInside && !isWhole ? snake : undefined;
}

const contextLines = 3;
const unended = Buffer.from('\n\\ No newline at end of file\n');

/** The hunks of a unified diff, with three lines around each change. Empty where nothing differs. */
export function unifiedHunks(
  before: readonly Buffer[],
  after: readonly Buffer[],
  edits: readonly Edit[],
): Buffer {
  const out: Buffer[] = [];
  const line = (sign: string, text: Buffer | undefined): void => {
    if (text === undefined) return;
    out.push(Buffer.from(sign), text);
    if (text.at(-1) !== newline) out.push(unended);
  };
  for (const hunk of grouped(edits)) {
    const [first, last] = [hunk[0], hunk.at(-1)];
    if (first === undefined || last === undefined) continue;
    const lead = Math.min(contextLines, first.oldStart);
    const trail = Math.min(contextLines, before.length - last.oldEnd);
    const old = range(first.oldStart - lead, last.oldEnd + trail);
    const now = range(first.newStart - lead, last.newEnd + trail);
    out.push(Buffer.from(`@@ -${old} +${now} @@\n`));
    let at = first.oldStart - lead;
    for (const { oldStart, oldEnd, newStart, newEnd } of hunk) {
      for (; at < oldStart; at++) line(' ', before[at]);
      for (; at < oldEnd; at++) line('-', before[at]);
      for (let index = newStart; index < newEnd; index++) line('+', after[index]);
    }
    for (const end = last.oldEnd + trail; at < end; at++) line(' ', before[at]);
  }
  return Buffer.concat(out);
}

/** Those whose surroundings touch are one hunk. */
function grouped(edits: readonly Edit[]): readonly (readonly Edit[])[] {
  const hunks: Edit[][] = [];
  for (const edit of edits) {
    const hunk = hunks.at(-1);
    const last = hunk?.at(-1);
    if (hunk !== undefined && last !== undefined && edit.oldStart - last.oldEnd <= 2 * contextLines)
      hunk.push(edit);
    else hunks.push([edit]);
  }
  return hunks;
}

/** From a start that counts from 0: an empty stretch is named by the line before it. */
function range(start: number, end: number): string {
  const length = end - start;
  const first = length === 0 ? start : start + 1;
  return length === 1 ? String(first) : `${first},${length}`;
}
