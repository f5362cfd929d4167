/** `npm run bench -- doors`: porter by the attached stream, which the first host has, and by the relay, which all others have. */

import { randomBytes } from 'node:crypto';
import { Porter } from '../src/porter/porter.ts';
import type { BoxDoor } from '../src/sandboxes/ports.ts';
import { benchEnv, nowhere, numberOption, openBenchEngine } from './box.ts';
import { compete, makeReport, present, type Row } from './harness.ts';

const bytes = 200_000_000;

async function measure(name: string, porter: Porter, rounds: number): Promise<readonly Row[]> {
  const flood = async (): Promise<void> => {
    const exec = porter.exec(
      { argv: ['head', '-c', String(bytes), '/dev/zero'], env: benchEnv, cwd: '/' },
      nowhere(),
    );
    await exec.result;
    exec.forget();
  };
  const ping = { name: `ping, ${name}`, perRound: 100, once: () => porter.ping() };
  const pings = await compete([ping], rounds);
  const floods = await compete([{ name: `200 MB out, ${name}`, perRound: 1, once: flood }], 5);
  return [...pings, ...floods];
}

export async function main(args: readonly string[]): Promise<number> {
  const rounds = numberOption(args, 'rounds', 30);
  const bench = await openBenchEngine();
  const { engine, newBox } = bench;
  const token = randomBytes(32);
  const rows: Row[] = [];
  const id = await engine.create(await newBox());
  let epoch = 0;
  const by = async (name: string, door: BoxDoor): Promise<void> => {
    const porter = await Porter.open(door, { epoch: ++epoch, token, timeoutMs: 20_000 });
    rows.push(...(await measure(name, porter, rounds)));
    porter.close();
  };
  try {
    const attached = await engine.attach(id);
    await engine.start(id);
    await by('attached stream', attached);
    await by('relay', await engine.openRelay(id));
  } finally {
    await engine.remove(id);
  }
  present(makeReport('doors', rows, await bench.versions()), args);
  return 0;
}
