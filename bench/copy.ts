/**
 * `npm run bench -- copy`: 10,000 small files (40 MB) into a sandbox and out of it, by `sally cp` and by `docker cp` on the
 * same container, each program's start included; and the most memory that the client and the daemon had resident.
 */

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { packageInfo } from '../src/lib/package-root.ts';
import { Sandbox } from '../src/sdk/sandbox.ts';
import { numberOption, openBenchEngine } from './box.ts';
import { type BenchDaemon, withHome } from './daemon-home.ts';
import { type Contender, compete, makeReport, present } from './harness.ts';

const sallyPath = join(packageInfo().root, 'dist/cli/sally.cjs');
const fileBytes = 4096;
const filesPerFolder = 100;
/** On the same file system for both, unlike `/tmp`, which `docker cp` does not see. */
const inside = '/var/tmp';

export async function main(args: readonly string[]): Promise<number> {
  const rounds = numberOption(args, 'rounds', 5);
  const files = numberOption(args, 'files', 10_000);
  const bench = await openBenchEngine();
  // In memory where there is such a place: what a disk takes is no matter of either program.
  const disk = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'sallyport-bench-'));
  try {
    makeTree(join(disk, 'tree'), files);
    await withHome(bench, async (home) => {
      const daemon = await home.start();
      const box = await Sandbox.create({ image: bench.image, name: 'bench' }, { client: daemon.client });
      const container = box.info.containerId ?? '';
      const environment = { DOCKER_HOST: bench.connection.endpoint, SALLYPORT_STATE_DIR: home.stateDir };
      const copier = new Copier(environment, disk);
      // Each time a new one: a sandbox's root may remove no more than its user.
      let turn = 0;
      const next = async (): Promise<unknown> => ++turn;
      const sally = (from: string, to: string): Promise<void> =>
        copier.run(process.execPath, ['--', sallyPath, 'cp', from, to]);
      const docker = (from: string, to: string): Promise<void> => copier.run('docker', ['cp', from, to]);
      const contender = (
        name: string,
        before: () => Promise<unknown>,
        act: () => Promise<void>,
      ): Contender => ({
        name,
        perRound: 1,
        measuredMs: () => copier.lastMs,
        once: async () => {
          await before();
          await act();
        },
      });
      const tree = join(disk, 'tree');
      const out = join(disk, 'out');
      const forget = async (): Promise<void> => rmSync(out, { recursive: true, force: true });
      const ins = await compete(
        [
          contender('in, docker cp', next, () => docker(tree, `${container}:${inside}/copy${turn}`)),
          contender('in, sally cp', next, () => sally(tree, `bench:${inside}/copy${turn}`)),
        ],
        rounds,
      );
      const outs = await compete(
        [
          contender('out, docker cp', forget, () => docker(`${container}:${inside}/copy1`, out)),
          contender('out, sally cp', forget, () => sally(`bench:${inside}/copy1`, out)),
        ],
        rounds,
      );
      present(makeReport('copy', [...ins, ...outs], await bench.versions()), args);
      process.stderr.write(
        `most memory: client ${copier.mostMb.get(process.execPath)} MB, daemon ${peakMb(daemon)} MB\n`,
      );
      await box.remove({ force: true });
    });
  } finally {
    rmSync(disk, { recursive: true, force: true });
  }
  return 0;
}

class Copier {
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

function peakMb({ pid }: BenchDaemon): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Math.round(Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1]) / 1024);
}

function makeTree(root: string, files: number): void {
  for (let index = 0; index < files; index++) {
    const folder = join(root, `d${Math.floor(index / filesPerFolder)}`);
    if (index % filesPerFolder === 0) mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `f${index}`), randomBytes(fileBytes));
  }
}
