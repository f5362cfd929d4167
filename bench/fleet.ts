/** `npm run bench -- fleet`: 50 running sandboxes: what the daemon needs for them, and how soon it has all of them again after `kill -9`. */

import { readFileSync } from 'node:fs';
import { Sandbox } from '../src/sdk/sandbox.ts';
import { numberOption, openBenchEngine } from './box.ts';
import { type BenchDaemon, type BenchHome, withHome } from './daemon-home.ts';
import { makeReport, present, quantile, type Row } from './harness.ts';

export async function main(args: readonly string[]): Promise<number> {
  const count = numberOption(args, 'count', 50);
  const rounds = numberOption(args, 'rounds', 3);
  const engine = await openBenchEngine();
  await withHome(engine, async (home) => {
    let daemon = await home.start();
    const ids: string[] = [];
    for (let made = 0; made < count; made++) {
      const { id } = await Sandbox.create(
        { image: engine.image, limits: { memory: '256m' } },
        { client: daemon.client },
      );
      ids.push(id);
      process.stderr.write(`\rmade ${made + 1} of ${count} `);
    }
    await allAnswer(daemon, ids);
    const resident = [residentMb(daemon.pid)];
    const ready: number[] = [];
    const answered: number[] = [];
    const cpu: number[] = [];
    for (let round = 0; round < rounds; round++) {
      daemon = await restarted(home, daemon, async (next, from) => {
        ready.push(performance.now() - from);
        await allAnswer(next, ids);
        answered.push(performance.now() - from);
        cpu.push(cpuMs(next.pid));
      });
      resident.push(residentMb(daemon.pid));
    }
    const rows = [
      row(`listens again with ${count}`, ready),
      row(`all ${count} answer an exec again`, answered),
      row('processor time of that', cpu),
      row('resident, MB', resident),
    ];
    process.stderr.write('\r\x1b[2K');
    present(makeReport('fleet', rows, await engine.versions()), args);
    daemon.client.close();
  });
  return 0;
}

async function restarted(
  home: BenchHome,
  old: BenchDaemon,
  work: (next: BenchDaemon, from: number) => Promise<void>,
): Promise<BenchDaemon> {
  old.client.close();
  await old.kill();
  const from = performance.now();
  const next = await home.start();
  await work(next, from);
  return next;
}

async function allAnswer({ client }: BenchDaemon, ids: readonly string[]): Promise<void> {
  await Promise.all(
    ids.map(async (id) => {
      const box = await Sandbox.connect(id, { client });
      if (box.info.state !== 'READY') throw new Error(`${id} is ${box.info.state}`);
      const { exitCode } = await box.exec(['true']);
      if (exitCode !== 0) throw new Error(`true ended with ${exitCode} in ${id}`);
    }),
  );
}

function residentMb(pid: number): number {
  const kb = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kb) / 1024;
}

/** The kernel counts in hundredths of a second. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function row(name: string, samples: readonly number[]): Row {
  const p50Ms = quantile(samples, 0.5);
  return {
    name,
    samples: samples.length,
    p50Ms,
    p95Ms: quantile(samples, 0.95),
    minMs: Math.min(...samples),
    ratio: 1,
  };
}
