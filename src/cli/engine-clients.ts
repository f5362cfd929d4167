/** The daemons of all engines of this user. A client made here starts none. */

import { type EngineFolder, listEngineFolders } from '../lib/engine-folders.ts';
import { DaemonClient } from '../sdk/client.ts';
import { readClientEnvironment } from '../sdk/config.ts';

export const engineFolders = (): readonly EngineFolder[] =>
  listEngineFolders(readClientEnvironment().stateDir);

export const engineClient = (engine: EngineFolder): DaemonClient =>
  new DaemonClient({ startDaemon: false }, { choice: { ...engine, mayFallBack: false } });

/** Calls `work` for one daemon after the other. */
export async function withEachEngine(work: (client: DaemonClient) => Promise<void>): Promise<void> {
  for (const engine of engineFolders()) {
    const client = engineClient(engine);
    try {
      await work(client);
    } finally {
      client.close();
    }
  }
}
