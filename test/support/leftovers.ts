/** What a test run left on the engine although it should not have. */

import { listContainers } from '../../src/engines/docker/containers/list.ts';
import { listImages } from '../../src/engines/docker/images/list.ts';
import { listNetworks } from '../../src/engines/docker/networks/list.ts';
import { listVolumes } from '../../src/engines/docker/volumes/list.ts';
import { removeVolume } from '../../src/engines/docker/volumes/remove.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { label } from '../../src/protocol/labels.ts';

/** One line for each container, network, volume and image that carries the label; empty when all is clean. */
export async function leftovers(connection: EngineConnection, labelled: string): Promise<readonly string[]> {
  const [containers, networks, volumes, images] = await Promise.all([
    listContainers(connection, [labelled]),
    listNetworks(connection, [labelled]),
    listVolumes(connection, [labelled]),
    listImages(connection, [labelled]),
  ]);
  return [
    ...containers.map(({ id, names, state }) => `container ${names.join(', ') || id} (${state})`),
    ...networks.map(({ name }) => `network ${name}`),
    ...volumes.map(({ name }) => `volume ${name}`),
    ...images.map(({ id, tags }) => `image ${tags.join(', ') || id}`),
  ].map((line) => `${line} [${labelled}]`);
}

export async function porterVolumes(connection: EngineConnection): Promise<ReadonlySet<string>> {
  const volumes = await listVolumes(connection, [label.owned, `${label.kind}=porter`]);
  return new Set(volumes.map(({ name }) => name));
}

/** A porter volume is a cache and no leftover, but a test run does not grow the caches of the machine it runs on. */
export async function removeNewPorterVolumes(
  connection: EngineConnection,
  before: ReadonlySet<string>,
): Promise<void> {
  for (const name of await porterVolumes(connection)) {
    if (!before.has(name)) await removeVolume(connection, name);
  }
}
