/** The engine of this run as a daemon has it, to look at what that daemon made, and to take it away. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bubblewrapParts } from '../../src/daemon/engine-parts.ts';
import { readStatus } from '../../src/engines/bubblewrap/box-process.ts';
import { dockerBoxEngine } from '../../src/engines/docker/box-engine.ts';
import { killContainer } from '../../src/engines/docker/containers/kill.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { readPorterBinary } from '../../src/porter/binary.ts';
import type { BoxEngine } from '../../src/sandboxes/ports.ts';
import { onDocker } from './engine-under-test.ts';
import { removeOwned } from './owned-objects.ts';

export async function boxEngineOf(connection: EngineConnection, stateDir: string): Promise<BoxEngine> {
  if (onDocker) return dockerBoxEngine(connection, readPorterBinary);
  return (await bubblewrapParts({ stateDir, uid: process.getuid?.() ?? -1 })).engine;
}

/** Of this owner, whatever runs. No daemon of theirs may be there any more. */
export async function removeBoxes(
  engine: BoxEngine,
  connection: EngineConnection,
  owner: string,
): Promise<void> {
  if (onDocker) await removeOwned(connection, owner);
  else for (const { id } of await engine.list(owner)) await engine.remove(id);
}

/** As its user or the kernel would kill it: all of it is gone, and its daemon was not asked. */
export async function killFromOutside(
  connection: EngineConnection,
  stateDir: string,
  id: string,
): Promise<void> {
  if (onDocker) {
    await killContainer(connection, id, 'SIGKILL');
    return;
  }
  const { firstPid } = readStatus(await readFile(join(stateDir, 'bubblewrap', id, 'status'), 'utf8'));
  if (firstPid === undefined) throw new Error(`${id} does not run`);
  process.kill(firstPid, 'SIGKILL');
}
