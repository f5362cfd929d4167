import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countLines, type Edit, LineNumbers, lineEdits, splitLines } from './line-diff.ts';

const linesOf = (text: string): readonly Buffer[] => splitLines(Buffer.from(text));

function editsOf(before: readonly Buffer[], after: readonly Buffer[], stepsLeft?: number): readonly Edit[] {
  const numbers = new LineNumbers();
  return lineEdits(numbers.of(before), numbers.of(after), stepsLeft);
}

/** What comes of the old lines if the edits are done. */
function edited(before: readonly Buffer[], after: readonly Buffer[], edits: readonly Edit[]): string {
  const out: Buffer[] = [];
  let at = 0;
  for (const { oldStart, oldEnd, newStart, newEnd } of edits) {
    expect(oldStart).toBeGreaterThanOrEqual(at);
    out.push(...before.slice(at, oldStart), ...after.slice(newStart, newEnd));
    at = oldEnd;
  }
  return Buffer.concat([...out, ...before.slice(at)]).toString();
}

const cost = (edits: readonly Edit[]): number =>
  edits.reduce((sum, edit) => sum + edit.oldEnd - edit.oldStart + edit.newEnd - edit.newStart, 0);

/** The least number of lines that must go and come, by the plain table. */
function leastCost(a: readonly Buffer[], b: readonly Buffer[]): number {
  let row = b.map(() => 0);
  for (const line of a) {
    const next: number[] = [];
    for (const [index, other] of b.entries()) {
      const corner = index === 0 ? 0 : (row[index - 1] ?? 0);
      const best = Math.max(row[index] ?? 0, next[index - 1] ?? 0);
      next.push(line.equals(other) ? Math.max(best, corner + 1) : best);
    }
    row = next;
  }
  return a.length + b.length - 2 * (row.at(-1) ?? 0);
}

const text = fc
  .array(fc.constantFrom('a', 'b', 'c', '{', '}', ''), { maxLength: 40 })
  .map((lines) => lines.join('\n'));

describe('the lines that differ', () => {
  it('are enough to make the new text of the old one, and no more than needed', () => {
    fc.assert(
      fc.property(text, text, (old, now) => {
        const [before, after] = [linesOf(old), linesOf(now)];
        const edits = editsOf(before, after);
        expect(edited(before, after, edits)).toBe(now);
        expect(cost(edits)).toBe(leastCost(before, after));
      }),
      { numRuns: 2000 },
    );
  });

  it('are enough also when the time is up', () => {
    fc.assert(
      fc.property(text, text, fc.integer({ min: 0, max: 60 }), (old, now, steps) => {
        const [before, after] = [linesOf(old), linesOf(now)];
        expect(edited(before, after, editsOf(before, after, steps))).toBe(now);
      }),
    );
  });

  it('of two large texts that have nothing in common are found in bounded time', () => {
    const many = (name: string): readonly Buffer[] =>
      linesOf(Array.from({ length: 200_000 }, (_, index) => `${name}${index}\n`).join(''));
    const [before, after] = [many('a'), many('b')];
    expect(cost(editsOf(before, after))).toBe(400_000);
  });
});

it.each([
  ['', 0],
  ['a', 1],
  ['a\n', 1],
  ['a\nb', 2],
  ['\n\n\n', 3],
  ['\n\n\n\n\n\n', 4],
])('the lines of %j are counted as far as one above three', (content, count) => {
  expect(countLines(Buffer.from(content), 3)).toBe(count);
});
