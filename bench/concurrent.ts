/**
 * `npm run bench -- concurrent`: execs a second with ten at a time, and how long a control reply takes on an idle
 * connection and on one that a stream floods.
 */

import type { Porter } from '../src/porter/porter.ts';
import { benchEnv, nowhere, numberOption, openBenchEngine, withPorter } from './box.ts';
import { compete, makeReport, present } from './harness.ts';

const atOnce = 10;

async function manyExecs(porter: Porter, count: number): Promise<void> {
  let left = count;
  const work = async (): Promise<void> => {
    while (left-- > 0) {
      const exec = porter.exec({ argv: ['true'], env: benchEnv, cwd: '/' }, nowhere());
      await exec.result;
      exec.forget();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

export async function main(args: readonly string[]): Promise<number> {
  const rounds = numberOption(args, 'rounds', 10);
  const execs = numberOption(args, 'execs', 300);
  const bench = await openBenchEngine();
  await withPorter(bench, async (porter) => {
    const idle = { name: 'ping, idle', perRound: 50, once: () => porter.ping() };
    const many = {
      name: `${execs} execs, ${atOnce} at a time`,
      perRound: 1,
      once: () => manyExecs(porter, execs),
    };
    const quiet = await compete([idle, many], rounds);
    const flood = porter.exec({ argv: ['cat', '/dev/zero'], env: benchEnv, cwd: '/' }, nowhere());
    await flood.started;
    const flooded = await compete([{ ...idle, name: 'ping, while a stream floods' }], rounds * 2);
    flood.kill(0);
    const { stdoutBytes } = await flood.result;
    const rows = [...quiet, ...flooded];
    present(makeReport('concurrent', rows, await bench.versions()), args);
    const [, row] = rows;
    process.stderr.write(`${Math.round((execs * 1000) / (row?.p50Ms ?? Number.NaN))} execs a second; `);
    process.stderr.write(`the flood was ${Math.round(stdoutBytes / 1e6)} MB\n`);
  });
  return 0;
}
