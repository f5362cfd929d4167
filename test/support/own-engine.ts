/** An engine of the test's own, for what must not be done to the one that all tests share. It needs root. */

import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { expect, inject, onTestFinished } from 'vitest';
import { readSetupEnvironment } from '../../src/setup/config.ts';
import { gatherHostFacts } from '../../src/setup/host-facts.ts';
import { findDaemon, findLeftovers } from '../../src/setup/private-engine/owned-processes.ts';
import { privateEnginePaths } from '../../src/setup/private-engine/paths.ts';
import { startPrivateEngine } from '../../src/setup/private-engine/start.ts';
import { stopPrivateEngine } from '../../src/setup/private-engine/stop.ts';
import { signalProcess, waitUntilGone } from '../../src/setup/processes.ts';
import './provided.ts';

/**
 * Gone when the test ends. `wrapped`: the program that is started in the place of dockerd, which starts it. `diskMiB`: all that it
 * keeps is in memory of this size. `mount`: mounts a disk for all that it keeps, and returns what takes it away.
 */
export async function ownEngine(
  wrapped?: (dockerd: string) => Promise<string>,
  {
    diskMiB,
    mount,
    atEnd = onTestFinished,
  }: {
    readonly diskMiB?: number;
    readonly mount?: (folder: string) => () => void;
    /** Takes what ends it; absent: the test does. */
    readonly atEnd?: (end: () => Promise<void>) => void;
  } = {},
) {
  const setup = { ...readSetupEnvironment(), engineDir: await mkdtemp('/tmp/sally-r-') };
  const unmount = mount?.(setup.engineDir);
  if (diskMiB !== undefined)
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskMiB}m,mode=755`, 'tmpfs', setup.engineDir]);
  const paths = privateEnginePaths(setup);
  const installed = (await gatherHostFacts(setup)).programs.dockerd ?? 'dockerd';
  const dockerd = wrapped === undefined ? installed : await wrapped(installed);
  const environment = setup.childVariables;
  atEnd(async () => {
    await stopPrivateEngine(paths, { environment });
    expect(await findLeftovers(paths)).toEqual([]);
    if (diskMiB !== undefined) execFileSync('umount', [setup.engineDir]);
    unmount?.();
    await rm(paths.runDir, { recursive: true, force: true });
  });
  return {
    socket: paths.socket,
    folder: setup.engineDir,
    start: async () => void (await startPrivateEngine(paths, { dockerd, environment, progress: () => {} })),
    stop: async () => void (await stopPrivateEngine(paths, { environment })),
    kill: async () => {
      const daemon = await findDaemon(paths);
      if (daemon === undefined) throw new Error('the engine does not run');
      await signalProcess(daemon, 'SIGKILL');
      await waitUntilGone([daemon], 10_000);
      // What it left behind would hold up the next one, and it takes the containers along.
      await stopPrivateEngine(paths, { environment });
    },
  };
}

/** From the engine of all tests to the one at this socket. */
export async function copyTestImage(socketPath: string): Promise<void> {
  const { endpoint, image } = inject('engine');
  await new Promise<void>((resolve, reject) => {
    const from = request(
      { socketPath: endpoint.replace('unix://', ''), path: `/images/${image}/get` },
      (content) => {
        const into = request({ socketPath, method: 'POST', path: '/images/load?quiet=1' }, (answer) => {
          answer.resume();
          answer.once('end', () =>
            answer.statusCode === 200 ? resolve() : reject(new Error(`load: ${answer.statusCode}`)),
          );
        });
        pipeline(content, into).catch(reject);
      },
    );
    from.once('error', reject);
    from.end();
  });
}
