/** Durations as people write them ("90s", "1h30m", "500ms") to milliseconds and back. A bare number has no unit and is refused. */

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Undefined for anything that is not exactly one duration: a limit must never be guessed. */
export function parseDuration(text: string): number | undefined {
  const trimmed = text.trim();
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(trimmed)) return undefined;
  let total = 0;
  let previous = Number.POSITIVE_INFINITY;
  for (const [, number, unit] of trimmed.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    const size = unitMs[unit ?? ''] ?? 0;
    // "30m1h" and "1h1h" are slips, not sums.
    if (size >= previous) return undefined;
    previous = size;
    total += Number(number) * size;
  }
  const rounded = Math.round(total);
  return Number.isSafeInteger(rounded) ? rounded : undefined;
}

export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  let rest = Math.round(ms / 1000);
  const parts: string[] = [];
  for (const [seconds, unit] of [
    [86_400, 'd'],
    [3600, 'h'],
    [60, 'm'],
    [1, 's'],
  ] as const) {
    const count = Math.floor(rest / seconds);
    rest -= count * seconds;
    if (count > 0) parts.push(`${count}${unit}`);
  }
  return parts.join('');
}
