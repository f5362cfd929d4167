/** `npm run bench -- throughput`: 200 MB of output through porter, and through the attach stream of a plain container. */

import { attachContainer } from '../src/engines/docker/containers/attach.ts';
import { createContainer } from '../src/engines/docker/containers/create.ts';
import { removeContainer } from '../src/engines/docker/containers/remove.ts';
import { startContainer } from '../src/engines/docker/containers/start.ts';
import { ownedLabels } from '../src/protocol/labels.ts';
import { type BenchEngine, benchEnv, nowhere, numberOption, openBenchEngine, withPorter } from './box.ts';
import { compete, makeReport, present } from './harness.ts';

/** The same program for both: large writes to a pipe, which is what both have for stdout. */
const program = (bytes: number): readonly [string, ...string[]] => ['head', '-c', String(bytes), '/dev/zero'];

async function openPlain({ connection, image }: BenchEngine, bytes: number): Promise<() => Promise<void>> {
  return async () => {
    const id = await createContainer(connection, {
      body: {
        Image: image,
        // Waits for a word, so that only what comes after is measured.
        Cmd: ['sh', '-c', `read word; ${program(bytes).join(' ')}`],
        Labels: ownedLabels('sandbox'),
        OpenStdin: true,
        AttachStdin: true,
        AttachStdout: true,
        HostConfig: { NetworkMode: 'none', LogConfig: { Type: 'none' } },
      },
    });
    try {
      const door = await attachContainer(connection, id);
      await startContainer(connection, id);
      plain.from = performance.now();
      await new Promise<void>((resolve, reject) => {
        let seen = 0;
        door.on('data', (chunk: Buffer) => {
          seen += chunk.length;
        });
        door.on('end', () => (seen === bytes ? resolve() : reject(new Error(`${seen} of ${bytes} bytes`))));
        door.on('error', reject);
        door.write('go\n');
      });
      plain.tookMs = performance.now() - plain.from;
    } finally {
      await removeContainer(connection, id);
    }
  };
}

/** Creating and removing the plain container is no part of its figure. */
const plain = { from: 0, tookMs: 0 };

export async function main(args: readonly string[]): Promise<number> {
  const bytes = numberOption(args, 'megabytes', 200) * 1_000_000;
  const rounds = numberOption(args, 'rounds', 8);
  const bench = await openBenchEngine();
  const once = await openPlain(bench, bytes);
  await withPorter(bench, async (porter) => {
    const rows = await compete(
      [
        { name: 'attach stream of a plain container', perRound: 1, once, measuredMs: () => plain.tookMs },
        {
          name: 'porter',
          perRound: 1,
          once: async () => {
            const exec = porter.exec({ argv: program(bytes), env: benchEnv, cwd: '/' }, nowhere());
            const { stdoutBytes } = await exec.result;
            exec.forget();
            if (stdoutBytes !== bytes) throw new Error(`${stdoutBytes} of ${bytes} bytes`);
          },
        },
      ],
      rounds,
    );
    present(makeReport('throughput', rows, await bench.versions()), args);
    for (const { name, p50Ms } of rows)
      process.stderr.write(`${name}: ${Math.round(bytes / 1000 / p50Ms)} MB/s\n`);
  });
  return 0;
}
