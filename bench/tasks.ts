/** `npm run bench -- tasks`: the smallest things that porter does, with the CPU time that porter itself takes for each. */

import { readFileSync } from 'node:fs';
import type { EngineConnection } from '../src/engines/docker/wire/connection.ts';
import type { Porter } from '../src/porter/porter.ts';
import { benchEnv, nowhere, numberOption, openBenchEngine, withPorter } from './box.ts';
import { type Contender, compete, makeReport, present, quantile } from './harness.ts';

const perRound = 20;

function tasks(porter: Porter): Readonly<Record<string, () => Promise<unknown>>> {
  const content = Buffer.alloc(1024, 'x');
  return {
    ping: () => porter.ping(),
    true: async () => {
      const exec = porter.exec({ argv: ['true'], env: benchEnv, cwd: '/' }, nowhere());
      await exec.result;
      exec.forget();
    },
    '1 KB written': () => porter.files.write('/tmp/small', content),
    '1 KB read': () => porter.files.readAll('/tmp/small', content.length),
    stat: () => porter.files.stat('/tmp/small'),
  };
}

async function firstProcess(connection: EngineConnection, id: string): Promise<number> {
  const path = `/containers/${id}/json`;
  const { State } = await connection.json<{ State: { Pid: number } }>({ method: 'GET', path });
  return State.Pid;
}

/** Time on a processor. Only of porter's own thread, not of what it starts. */
function cpuMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
}

export async function main(args: readonly string[]): Promise<number> {
  const bench = await openBenchEngine();
  await withPorter(bench, async (porter, id) => {
    const pid = await firstProcess(bench.connection, id);
    const took = new Map<string, number[]>();
    const cpu = new Map<string, number[]>();
    const contenders = Object.entries(tasks(porter)).map(([name, task]): Contender => {
      let lastMs = 0;
      const times: number[] = [];
      const used: number[] = [];
      took.set(name, times);
      cpu.set(name, used);
      return {
        name,
        perRound,
        once: async () => {
          const before = cpuMs(pid);
          const from = performance.now();
          await task();
          lastMs = performance.now() - from;
          times.push(lastMs);
          used.push(cpuMs(pid) - before);
        },
        measuredMs: () => lastMs,
      };
    });
    const rows = await compete(contenders, numberOption(args, 'rounds', 30));
    present(makeReport('tasks', rows, await bench.versions()), args);
    for (const [name, times] of took) {
      const p10 = quantile(times, 0.1).toFixed(2);
      process.stderr.write(
        `${name}: p10 ${p10} ms, porter's CPU ${quantile(cpu.get(name) ?? [], 0.5).toFixed(2)} ms\n`,
      );
    }
  });
  return 0;
}
