/** The network of one sandbox and its services: made, found again, made anew when somebody took it away. */

import { createHash } from 'node:crypto';
import { primaryAlias } from '../policy/services.ts';
import { formatSubnet, freeSubnets, parseSubnet, type Subnet, subnetCount } from '../policy/subnets.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import { label, ownedLabels } from '../protocol/labels.ts';
import { hostSubnets } from './host-subnets.ts';
import type { ServiceEngine } from './ports/services.ts';
import type { SandboxRecord } from './records.ts';
import type { SandboxWorld } from './world.ts';

/** Another daemon may take the same subnet in the same moment, and an engine lists a network only when it is made. */
const mostAttempts = 10;

export interface MadeNetwork {
  readonly id: string;
  readonly name: string;
  readonly subnet: string;
}

export async function makeNetwork(
  { services, owner }: Pick<SandboxWorld, 'services' | 'owner'>,
  record: Pick<SandboxRecord, 'id' | 'name' | 'containerName'>,
): Promise<MadeNetwork> {
  const labels = ownedLabels('network', {
    [label.owner]: owner,
    [label.id]: record.id,
    [label.name]: record.name,
  });
  const name = record.containerName;
  const first = createHash('sha256').update(record.id).digest().readUInt32BE(0) % subnetCount;
  const tried: Subnet[] = [];
  for (;;) {
    const taken = [...(await takenSubnets(services)), ...tried];
    const next = freeSubnets(taken, first).next();
    if (next.done === true) break;
    const subnet = formatSubnet(next.value);
    try {
      return { id: await services.createNetwork({ name, subnet, labels }), name, subnet };
    } catch (error) {
      // An engine has no code for a subnet that somebody was quicker to take: another one is tried, whatever it was.
      tried.push(next.value);
      if (!isSallyportError(error, 'engine_failed') || tried.length >= mostAttempts) throw error;
    }
  }
  throw new SallyportError('subnets_exhausted', `there is no free subnet for the network of ${record.name}`, {
    details: { sandbox: record.name },
  });
}

async function takenSubnets(services: ServiceEngine): Promise<readonly Subnet[]> {
  const engine = (await services.takenSubnets()).flatMap((text) => parseSubnet(text) ?? []);
  return [...engine, ...(await hostSubnets())];
}

/** Of containers that were on one that is gone. They must not run. */
export async function reconnectAll(services: ServiceEngine, record: SandboxRecord): Promise<void> {
  const name = record.containerName;
  if (record.containerId !== undefined) {
    await services.reconnect({ name, alias: primaryAlias }, record.containerId);
  }
  for (const service of record.services ?? []) {
    if (service.containerId !== undefined) {
      await services.reconnect({ name, alias: service.name }, service.containerId);
    }
  }
}
