/** How long it takes to find that nothing changed: a project of 10,000 files, resolved again with and without its digests. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dockerBuildTurns } from '../src/engines/docker/build-turns.ts';
import { dockerImageEngine } from '../src/engines/docker/image-engine.ts';
import { ProjectImages } from '../src/images/project/project-images.ts';
import { RegistryCredentials } from '../src/images/registry-credentials.ts';
import { silent } from '../src/lib/progress.ts';
import { ImageRecordFiles } from '../src/store/image-records.ts';
import { processHolder } from '../src/store/process-identity.ts';
import { numberOption, openBenchEngine } from './box.ts';
import { compete, makeReport, present } from './harness.ts';

const folders = 100;

function writeTree(folder: string, files: number, image: string): void {
  for (let index = 0; index < files; index++) {
    const inner = join(folder, `d${index % folders}`);
    mkdirSync(inner, { recursive: true });
    writeFileSync(join(inner, `f${index}`), `${index}\n`.repeat(200));
  }
  writeFileSync(join(folder, '.dockerignore'), 'node_modules\n*.log\n!keep.log\n');
  writeFileSync(join(folder, 'Dockerfile.sallyport'), `FROM ${image}\nCOPY . /src/\n`);
}

export async function main(args: readonly string[]): Promise<number> {
  const bench = await openBenchEngine();
  const home = mkdtempSync(join(tmpdir(), 'sallyport-resolve-'));
  const engine = dockerImageEngine(bench.connection);
  const folder = join(home, 'bench-resolve');
  mkdirSync(folder);
  writeTree(folder, numberOption(args, 'files', 10_000), bench.image);
  const imagesWith = (records: ImageRecordFiles): ProjectImages =>
    new ProjectImages({
      engine,
      records,
      turns: dockerBuildTurns(bench.connection, processHolder()),
      credentials: new RegistryCredentials('/nowhere'),
      porterVersion: '1',
      now: () => new Date(),
    });
  const warm = imagesWith(new ImageRecordFiles(join(home, 'state')));
  const approved = (await warm.look({ folder }))?.approval;
  const resolve = async (images: ProjectImages): Promise<string> =>
    (await images.resolve({ folder, approved }, { progress: silent }))?.reference ?? '';
  const reference = await resolve(warm);
  try {
    const contenders = [
      { name: 'nothing changed', perRound: 3, once: async () => void (await resolve(warm)) },
      {
        name: 'the first time in a daemon',
        perRound: 1,
        once: async () => void (await resolve(imagesWith(new ImageRecordFiles(join(home, 'state'))))),
      },
      {
        name: 'every file read',
        perRound: 1,
        once: async () => {
          rmSync(join(home, 'cold'), { recursive: true, force: true });
          await resolve(imagesWith(new ImageRecordFiles(join(home, 'cold'))));
        },
      },
    ];
    const rows = await compete(contenders, numberOption(args, 'rounds', 10));
    present(makeReport('resolve', rows, await bench.versions()), args);
  } finally {
    await engine.remove(reference);
    rmSync(home, { recursive: true, force: true });
  }
  return 0;
}
