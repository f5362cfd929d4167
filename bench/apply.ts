/**
 * `npm run bench -- apply`: 10,000 files of 4 KB that changed inside, brought back onto their folder. By `sally apply`; by `docker cp` of the
 * folder with a patch that git makes and applies, which also refuses what changed on the host; and by `docker cp` with `cp`, which looks
 * at nothing.
 */

import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageInfo } from '../src/lib/package-root.ts';
import { Sandbox } from '../src/sdk/sandbox.ts';
import { numberOption, openBenchEngine } from './box.ts';
import { withHome } from './daemon-home.ts';
import { type Contender, compete, makeReport, present } from './harness.ts';
import { makeTree, peakMb, TimedPrograms } from './timed-programs.ts';

const sallyPath = join(packageInfo().root, 'dist/cli/sally.cjs');
const change = 'for f in d*/f*; do echo more >> $f; done';

export async function main(args: readonly string[]): Promise<number> {
  const rounds = numberOption(args, 'rounds', 5);
  const files = numberOption(args, 'files', 10_000);
  const bench = await openBenchEngine();
  const disk = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
  const [tree, other, out] = [join(disk, 'tree'), join(disk, 'other'), join(disk, 'out')];
  try {
    makeTree(tree, files);
    cpSync(tree, other, { recursive: true });
    await withHome(bench, async (home) => {
      const daemon = await home.start();
      const spec = { image: bench.image, name: 'bench', workspace: { path: tree, mode: 'copy' as const } };
      const box = await Sandbox.create(spec, { client: daemon.client });
      const container = box.info.containerId ?? '';
      const environment = { DOCKER_HOST: bench.connection.endpoint, SALLYPORT_STATE_DIR: home.stateDir };
      const programs = new TimedPrograms(environment, disk);
      /** Its own folder, and what it fetched last time is gone before the clock runs. */
      const peer = (
        name: string,
        before: () => Promise<void>,
        lines: readonly (readonly [string, ...string[]])[],
      ): Contender => {
        let tookMs = 0;
        return {
          name,
          perRound: 1,
          measuredMs: () => tookMs,
          once: async () => {
            rmSync(out, { recursive: true, force: true });
            await before();
            tookMs = 0;
            for (const [program, ...words] of lines) {
              await programs.run(program, words);
              tookMs += programs.lastMs;
            }
          },
        };
      };
      const changeAll = async (): Promise<void> => {
        const { exitCode } = await box.exec(['sh', '-ec', change]);
        if (exitCode !== 0) throw new Error(`the change inside ended with ${exitCode}`);
      };
      const rows = await compete(
        [
          peer('docker cp, git diff, git apply', changeAll, [
            ['docker', 'cp', `${container}:/workspace`, 'out'],
            ['sh', '-c', 'git diff --no-index --binary --no-prefix other out > patch || [ $? = 1 ]'],
            ['git', 'apply', '-p1', '--directory=other', 'patch'],
          ]),
          peer('docker cp, cp', changeAll, [
            ['docker', 'cp', `${container}:/workspace`, 'out'],
            ['cp', '-rT', 'out', 'other'],
          ]),
          {
            name: 'sally apply',
            perRound: 1,
            measuredMs: () => programs.lastMs,
            once: async () => {
              await changeAll();
              await programs.run(process.execPath, ['--', sallyPath, 'apply', 'bench']);
            },
          },
        ],
        rounds,
      );
      present(makeReport('apply', rows, await bench.versions()), args);
      process.stderr.write(
        `most memory: client ${programs.mostMb.get(process.execPath)} MB, daemon ${peakMb(daemon)} MB\n`,
      );
      await box.remove({ force: true });
    });
  } finally {
    rmSync(disk, { recursive: true, force: true });
  }
  return 0;
}
