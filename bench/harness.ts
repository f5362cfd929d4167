/**
 * Runs contenders side by side: every round gives each its turn, so that what the machine does meanwhile hits all alike.
 * A figure means nothing without its peer in the same run, so the report is one of ratios.
 */

import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { packageInfo } from '../src/lib/package-root.ts';

export interface Contender {
  readonly name: string;
  /** How often it runs in each round: fast ones more often than slow ones. */
  readonly perRound: number;
  readonly once: () => Promise<void>;
  /** The figure of the last turn, where preparing it is not to be counted. */
  readonly measuredMs?: () => number;
}

export interface Row {
  readonly name: string;
  readonly samples: number;
  readonly p50Ms: number;
  readonly p95Ms?: number;
  readonly p99Ms?: number;
  readonly minMs?: number;
  readonly maxMs?: number;
  /** How many times slower than the reference: at p50, or at p99 where there is one. */
  readonly ratio: number;
}

/** Those that the rows have are the columns of the table. */
const figures = ['p50Ms', 'p95Ms', 'p99Ms', 'minMs', 'maxMs'] as const;

export interface Report {
  readonly benchmark: string;
  readonly date: string;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly versions: Readonly<Record<string, string>>;
  readonly rows: readonly Row[];
}

export async function compete(contenders: readonly Contender[], rounds: number): Promise<readonly Row[]> {
  const samples = new Map<string, number[]>(contenders.map(({ name }) => [name, []]));
  // One turn each that does not count: caches, lazy imports, first use of a connection.
  for (const contender of contenders) await contender.once();
  for (let round = 0; round < rounds; round++) {
    for (const { name, perRound, once, measuredMs } of contenders) {
      for (let turn = 0; turn < perRound; turn++) {
        const from = performance.now();
        await once();
        samples.get(name)?.push(measuredMs?.() ?? performance.now() - from);
      }
    }
    process.stderr.write(`\rround ${round + 1} of ${rounds} `);
  }
  process.stderr.write('\r\x1b[2K');
  const reference = quantile(samples.get(contenders[0]?.name ?? '') ?? [], 0.5);
  return contenders.map(({ name }) => {
    const own = samples.get(name) ?? [];
    const p50Ms = quantile(own, 0.5);
    return {
      name,
      samples: own.length,
      p50Ms,
      p95Ms: quantile(own, 0.95),
      minMs: Math.min(...own),
      ratio: p50Ms / reference,
    };
  });
}

export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)] ?? Number.NaN;
  const high = sorted[Math.ceil(at)] ?? Number.NaN;
  return low + (high - low) * (at - Math.floor(at));
}

export function makeReport(
  benchmark: string,
  rows: readonly Row[],
  versions: Record<string, string>,
): Report {
  const [cpu] = cpus();
  return {
    benchmark,
    date: new Date().toISOString(),
    machine: {
      cpu: cpu?.model ?? 'unknown',
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      kernel: release(),
      commit: commit(),
    },
    versions: { node: process.version, ...versions },
    rows,
  };
}

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
      encoding: 'utf8',
      cwd: packageInfo().root,
    }).trim();
  } catch {
    return 'unknown';
  }
}

/** The table on stdout, and the whole as JSON in `.cache/bench/`; with `--json` the JSON on stdout instead. */
export function present(report: Report, args: readonly string[]): void {
  const folder = join(packageInfo().root, '.cache', 'bench');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${report.benchmark}.json`);
  const json = `${JSON.stringify(report, null, 2)}\n`;
  writeFileSync(file, json);
  if (args.includes('--json')) {
    process.stdout.write(json);
    return;
  }
  const ms = (value: number): string => value.toFixed(value < 10 ? 2 : 0).padStart(10);
  const columns = figures.filter((figure) => report.rows[0]?.[figure] !== undefined);
  const head = columns.map((figure) => figure.replace('Ms', ' ms').padStart(10)).join('');
  const width = Math.max(...report.rows.map(({ name }) => name.length));
  const lines = [
    `${report.benchmark}, ${report.date.slice(0, 10)}, ${report.machine['cores']} × ${report.machine['cpu']}, kernel ${report.machine['kernel']}`,
    Object.entries(report.versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(', '),
    '',
    `${''.padEnd(width)}${head}     n   times`,
    ...report.rows.map((row) => {
      const values = columns.map((figure) => ms(row[figure] ?? Number.NaN)).join('');
      return `${row.name.padEnd(width)}${values} ${String(row.samples).padStart(5)} ${`${row.ratio.toFixed(1)}×`.padStart(7)}`;
    }),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
