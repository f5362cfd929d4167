/**
 * `npm run bench -- copy`: 10,000 small files (40 MB) into a sandbox and out of it, by `sally cp` and by `docker cp` on the
 * same container, each program's start included; and the most memory that the client and the daemon had resident.
 */

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageInfo } from '../src/lib/package-root.ts';
import { Sandbox } from '../src/sdk/sandbox.ts';
import { numberOption, openBenchEngine } from './box.ts';
import { withHome } from './daemon-home.ts';
import { type Contender, compete, makeReport, present } from './harness.ts';
import { makeTree, peakMb, TimedPrograms } from './timed-programs.ts';

const sallyPath = join(packageInfo().root, 'dist/cli/sally.cjs');
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
      const copier = new TimedPrograms(environment, disk);
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
