/**
 * Removes a private engine with everything that it holds: images, volumes, containers, log and configuration. An edited configuration
 * stays unless `alsoConfiguration` is set. Idempotent. The caller makes sure that no one else uses the engine.
 */

import { existsSync } from 'node:fs';
import { rm, rmdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { SallyportError } from '../../protocol/errors.ts';
import { unmountBelow } from './mounts.ts';
import type { PrivateEnginePaths } from './paths.ts';
import { removeRuntimes } from './runtimes.ts';
import { type StopOptions, stopPrivateEngine } from './stop.ts';

/** Whether anything of it is on this machine, running or not. */
export function isPresent({ dataRoot, logFile, socket }: PrivateEnginePaths): boolean {
  return [dataRoot, logFile, socket].some((path) => existsSync(path));
}

export async function removePrivateEngine(
  paths: PrivateEnginePaths,
  options: StopOptions & { readonly alsoConfiguration: boolean },
): Promise<void> {
  await stopPrivateEngine(paths, options);
  // SECURITY: a recursive removal through a mount would delete what is mounted there.
  if (!(await unmountBelow(paths.dataRoot, options.environment))) {
    throw new SallyportError('setup_failed', `something is still mounted below ${paths.dataRoot}`, {
      details: { path: paths.dataRoot },
      advice: `Unmount it (\`findmnt -R ${paths.dataRoot}\`), then run this again.`,
    });
  }
  await rm(paths.dataRoot, { recursive: true, force: true });
  await rm(paths.logFile, { force: true });
  if (options.alsoConfiguration) await rm(paths.configFile, { force: true });
  else await removeRuntimes(paths.configFile);
  for (const folder of [paths.runDir, paths.stateDir]) await removeIfEmpty(folder);
  // The folders above are ours as well where the engine is the machine's.
  if (!paths.separate)
    for (const folder of [paths.runDir, paths.stateDir]) await removeIfEmpty(dirname(folder));
}

async function removeIfEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST', 'EBUSY'].includes(error.code ?? '')) throw error;
  });
}
