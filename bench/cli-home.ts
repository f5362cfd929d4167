/** The built command line on a state folder of the benchmark's own; what it made is gone at the end. */

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { EngineConnection } from '../src/engines/docker/wire/connection.ts';
import { packageInfo } from '../src/lib/package-root.ts';

const execute = promisify(execFile);

export const sallyPath = join(packageInfo().root, 'dist/cli/sally.cjs');

export interface CliHome {
  readonly stateDir: string;
  readonly env: Readonly<Record<string, string>>;
  /** What the program prints. */
  readonly call: (program: string, ...words: readonly string[]) => Promise<string>;
  readonly sally: (...words: readonly string[]) => Promise<string>;
}

export async function withCliHome(
  { endpoint }: EngineConnection,
  work: (home: CliHome) => Promise<void>,
): Promise<void> {
  const stateDir = await mkdtemp(join(tmpdir(), 'sallyport-bench-'));
  const env = {
    PATH: process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
    HOME: stateDir,
    DOCKER_HOST: endpoint,
    SALLYPORT_STATE_DIR: stateDir,
  };
  const call: CliHome['call'] = async (program, ...words) =>
    (await execute(program, words, { env, cwd: stateDir })).stdout.trim();
  const sally: CliHome['sally'] = async (...words) => await call(sallyPath, ...words);
  try {
    await work({ stateDir, env, call, sally });
  } finally {
    await sally('reset', '--yes').catch(() => {});
    await sally('daemon', 'stop').catch(() => {});
    await rm(stateDir, { recursive: true, force: true });
  }
}
