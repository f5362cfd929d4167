/** "Did you mean": the known word nearest to an unknown one. */

const longestWord = 64;

/** Undefined when nothing is near: a wrong suggestion is worse than none. */
export function closest(word: string, known: readonly string[]): string | undefined {
  if (word.length > longestWord) return undefined;
  const given = word.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.min(3, Math.floor(given.length / 2) + 1);
  for (const candidate of known) {
    const distance = editDistance(given, candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) {
      bestDistance = distance;
      best = candidate;
    }
  }
  return best;
}

/** Insertions, deletions, replacements and swaps of neighbours. Anything from `bound` on counts as `bound`. */
function editDistance(a: string, b: string, bound: number): number {
  if (Math.abs(a.length - b.length) >= bound) return bound;
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min(
        (previous[j] ?? bound) + 1,
        (row[j - 1] ?? bound) + 1,
        (previous[j - 1] ?? bound) + (same ? 0 : 1),
      );
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) cost = Math.min(cost, (before[j - 2] ?? bound) + 1);
      row.push(cost);
    }
    before = previous;
    previous = row;
  }
  return Math.min(previous[b.length] ?? bound, bound);
}
