/** Takes away all that a daemon has made in the engine: its boxes first, because networks go when nothing is on them. */

import { dockerBoxEngine } from '../../src/engines/docker/box-engine.ts';
import { dockerServiceEngine } from '../../src/engines/docker/service-engine.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { readPorterBinary } from '../../src/porter/binary.ts';

export async function removeOwned(connection: EngineConnection, owner: string): Promise<void> {
  const engine = dockerBoxEngine(connection, readPorterBinary);
  const services = dockerServiceEngine(connection);
  for (const box of [...(await engine.list(owner)), ...(await services.list(owner))])
    await engine.remove(box.id);
  for (const network of await services.networks(owner)) await services.removeNetwork(network.id);
}
