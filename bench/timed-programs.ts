/** A tree of small files, and programs whose whole life is timed, with the most memory that those of Node had. */

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { BenchDaemon } from './daemon-home.ts';

const fileBytes = 4096;
const filesPerFolder = 100;

export class TimedPrograms {
  lastMs = Number.NaN;
  readonly mostMb = new Map<string, number>();
  readonly #environment: Readonly<Record<string, string>>;
  readonly #watcher: string;

  constructor(environment: Readonly<Record<string, string>>, folder: string) {
    this.#environment = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: folder, ...environment };
    this.#watcher = join(folder, 'report-peak.cjs');
    writeFileSync(
      this.#watcher,
      "process.on('exit', () => require('node:fs').writeSync(3, String(process.resourceUsage().maxRSS)));\n",
    );
  }

  /** The time is the whole life of the program. Of a program of Node's also the most memory is kept. */
  async run(program: string, words: readonly string[]): Promise<void> {
    const isNode = program === process.execPath;
    const started = performance.now();
    const child = spawn(program, isNode ? ['--require', this.#watcher, ...words] : words, {
      stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
      env: this.#environment,
      cwd: this.#environment['HOME'],
    });
    const report = text(child.stdio[3] as NodeJS.ReadableStream);
    const [code] = (await once(child, 'exit')) as [number | null];
    this.lastMs = performance.now() - started;
    if (code !== 0) throw new Error(`${program} ended with ${code}`);
    const kilobytes = Number(await report);
    const most = this.mostMb.get(program) ?? 0;
    if (isNode) this.mostMb.set(program, Math.max(most, Math.round(kilobytes / 1024)));
  }
}

/** The most that it had resident so far. */
export function peakMb({ pid }: BenchDaemon): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Math.round(Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1]) / 1024);
}

export function makeTree(root: string, files: number): void {
  for (let index = 0; index < files; index++) {
    const folder = join(root, `d${Math.floor(index / filesPerFolder)}`);
    if (index % filesPerFolder === 0) mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `f${index}`), randomBytes(fileBytes));
  }
}
