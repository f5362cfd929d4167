/**
 * A user of the test's own for the command line: home, state folder, and a place for a private engine. `sally uninstall` removes a
 * private engine, so its tests must never see the one of this machine.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { listEngineFolders } from '../../src/lib/engine-folders.ts';
import { ownerId } from '../../src/lib/owner.ts';
import { DaemonClient } from '../../src/sdk/client.ts';
import { type CliResult, sally } from './cli.ts';
import { testEngine } from './engine.ts';
import { removeOwned } from './owned-objects.ts';

export interface OwnHome {
  readonly stateDir: string;
  readonly configDir: string;
  readonly owner: string;
  readonly env: Record<string, string>;
  readonly sally: (args: readonly string[], options?: Parameters<typeof sally>[1]) => Promise<CliResult>;
}

/** All of it is gone when the test ends. `engineDir`: of a private engine that the test started. */
export async function ownHome(options: { readonly engineDir?: string } = {}): Promise<OwnHome> {
  const home = await mkdtemp(join(tmpdir(), 'sally-h-'));
  const stateDir = join(home, 'state');
  const owner = ownerId(process.getuid?.() ?? -1, stateDir);
  const env = {
    HOME: home,
    SALLYPORT_STATE_DIR: stateDir,
    SALLYPORT_ENGINE_DIR: options.engineDir ?? join(home, 'e'),
  };
  onTestFinished(async () => {
    for (const { path } of listEngineFolders(stateDir)) {
      // A folder of one engine is a state folder of its own to a client.
      const client = new DaemonClient({ stateDir: path, startDaemon: false, anyEngine: true });
      await client.shutdown().finally(() => client.close());
      const itsOwner = ownerId(process.getuid?.() ?? -1, path);
      if (options.engineDir === undefined) await removeOwned(testEngine().connection, itsOwner);
    }
    await rm(home, { recursive: true, force: true });
  });
  return {
    stateDir,
    configDir: join(home, '.config/sallyport'),
    owner,
    env,
    sally: (args, more = {}) => sally(args, { ...more, env: { ...env, ...more.env } }),
  };
}
