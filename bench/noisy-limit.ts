/** What `npm run bench -- noisy` holds its figures to. Pure: it measures nothing. */

/** N22: the slowest hundredth of the API's answers and of another sandbox's commands. */
export const limitMs = 50;

/** No flood of the daemon: `quiet` is the reference; `spin` burns processors, and `pipes` wakes its own processes. */
const controls: readonly string[] = ['quiet', 'spin', 'pipes'];

export interface Figures {
  readonly way: string;
  readonly probe: string;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly samples: number;
}

export const nameOf = ({ way, probe }: Figures): string => `${way}: ${probe}`;

export interface Verdict {
  readonly exitCode: 0 | 1;
  readonly message: string;
}

/** A machine that is slow without a flood proves nothing, so `quiet` is held to the limit as well; the other controls are not. */
export function verdictOf(rows: readonly Figures[]): Verdict {
  // What was never answered has no figure, and NaN is not within the limit.
  const over = rows.filter(
    ({ way, p99Ms }) => (way === 'quiet' || !controls.includes(way)) && !(p99Ms <= limitMs),
  );
  const quiet = over.filter(({ way }) => way === 'quiet');
  if (quiet.length > 0)
    return failed(`without a flood, p99 above ${limitMs} ms: ${listed(quiet)}; run it on a quiet machine`);
  if (over.length > 0) return failed(`p99 above ${limitMs} ms: ${listed(over)}`);
  if (rows.every(({ way }) => controls.includes(way))) return failed('no flood was measured');
  return { exitCode: 0, message: `p99 of every flood is at most ${limitMs} ms` };
}

const failed = (message: string): Verdict => ({ exitCode: 1, message });

const listed = (rows: readonly Figures[]): string =>
  rows.map((row) => `${nameOf(row)} (${row.p99Ms.toFixed(1)} ms)`).join(', ');

/** How many times slower the slowest hundredth is than without a flood. */
export function ratioToQuiet(row: Figures, rows: readonly Figures[]): number {
  const quiet = rows.find(({ way, probe }) => way === 'quiet' && probe === row.probe);
  return row.p99Ms / (quiet?.p99Ms ?? Number.NaN);
}
