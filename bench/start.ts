/** `npm run bench -- start`: create, start and first answer of a container whose first process is porter, and of a plain one. */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { boxBody } from '../src/engines/docker/box-body.ts';
import { attachContainer } from '../src/engines/docker/containers/attach.ts';
import { createContainer } from '../src/engines/docker/containers/create.ts';
import { removeContainer } from '../src/engines/docker/containers/remove.ts';
import { startContainer } from '../src/engines/docker/containers/start.ts';
import type { ContainerBody } from '../src/engines/docker/types.ts';
import type { Door } from '../src/engines/docker/wire/door.ts';
import { Porter } from '../src/porter/porter.ts';
import { type BenchEngine, numberOption, openBenchEngine } from './box.ts';
import { compete, makeReport, present } from './harness.ts';

/** From create to the first answer by what runs inside. Removing it is no part of the figure. */
async function answerMs(
  { connection }: BenchEngine,
  body: ContainerBody,
  answer: (door: Door) => Promise<void>,
): Promise<number> {
  const from = performance.now();
  const id = await createContainer(connection, { body });
  try {
    const door = await attachContainer(connection, id);
    await startContainer(connection, id);
    await answer(door);
    const tookMs = performance.now() - from;
    door.destroy();
    return tookMs;
  } finally {
    await removeContainer(connection, id);
  }
}

export async function main(args: readonly string[]): Promise<number> {
  const bench = await openBenchEngine();
  const withPorter = boxBody(await bench.newBox());
  // The same hardened container in every other respect; `cat` is about the smallest program that answers.
  const { Mounts: _, ...hostConfig } = withPorter.HostConfig ?? {};
  const plain: ContainerBody = { ...withPorter, Entrypoint: [], Cmd: ['cat'], HostConfig: hostConfig };
  const took = { plain: 0, porter: 0 };
  const rows = await compete(
    [
      {
        name: 'the same container with cat',
        perRound: 1,
        once: async () => {
          took.plain = await answerMs(bench, plain, async (door) => {
            door.write('x');
            await once(door, 'data');
          });
        },
        measuredMs: () => took.plain,
      },
      {
        name: 'porter, to its greeting',
        perRound: 1,
        once: async () => {
          took.porter = await answerMs(bench, withPorter, async (door) => {
            await Porter.open(door, { epoch: 1, token: randomBytes(32), timeoutMs: 20_000 });
          });
        },
        measuredMs: () => took.porter,
      },
    ],
    numberOption(args, 'rounds', 20),
  );
  present(makeReport('start', rows, await bench.versions()), args);
  const [without, withIt] = rows;
  const added = (withIt?.p50Ms ?? Number.NaN) - (without?.p50Ms ?? Number.NaN);
  process.stderr.write(`porter adds ${added.toFixed(1)} ms at p50\n`);
  return 0;
}
