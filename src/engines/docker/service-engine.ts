/** Services and their networks on a Docker engine, behind the port that `sandboxes/` declares. */

import { label } from '../../protocol/labels.ts';
import type { ServiceEngine } from '../../sandboxes/ports/services.ts';
import { knownBox } from './box-state.ts';
import { checkInContainer } from './containers/check.ts';
import { listContainers } from './containers/list.ts';
import { containerLogs } from './containers/logs.ts';
import { inspectServiceImage } from './images/service-image.ts';
import { networkTraits } from './network-traits.ts';
import { connectToNetwork } from './networks/connect.ts';
import { createNetwork } from './networks/create.ts';
import { listNetworks } from './networks/list.ts';
import { removeNetwork } from './networks/remove.ts';
import { networkSubnets } from './networks/subnets.ts';
import { serviceBody } from './service-body.ts';
import { StorageSize } from './storage-size.ts';
import { engineVersion } from './system/version.ts';
import type { EngineConnection } from './wire/connection.ts';

export function dockerServiceEngine(
  connection: EngineConnection,
  storage = new StorageSize(connection),
): ServiceEngine {
  const ofOwner = (kind: 'service' | 'network', owner: string): readonly [string, string, string] => [
    `${label.owned}=true`,
    `${label.kind}=${kind}`,
    `${label.owner}=${owner}`,
  ];
  // Asked each time: an engine may be another one since it was last asked, and to guess wrong would open the network.
  const traits = async () => networkTraits((await engineVersion(connection)).engine);
  return {
    image: (reference, signal) =>
      inspectServiceImage(connection, reference, signal === undefined ? {} : { signal }),
    createNetwork: async ({ name, subnet, labels }) => {
      const { driverOptions } = await traits();
      return await createNetwork(connection, { name, subnet, labels, driverOptions });
    },
    networks: (owner) => listNetworks(connection, ofOwner('network', owner)),
    takenSubnets: () => networkSubnets(connection),
    removeNetwork: (id) => removeNetwork(connection, id),
    reconnect: ({ name, alias }, container) =>
      connectToNetwork(connection, name, { container, aliases: [alias] }),
    create: async (request, refused) => {
      const body = serviceBody(request, await traits());
      return await storage.create({ name: request.name, body }, request.limits.diskBytes, {
        ...(refused === undefined ? {} : { refused }),
      });
    },
    list: async (owner) => (await listContainers(connection, ofOwner('service', owner))).map(knownBox),
    check: (id, argv, options) => checkInContainer(connection, id, argv, options),
    logs: (id, options) => containerLogs(connection, id, options),
  };
}
