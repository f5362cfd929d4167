/** Services and networks in the engine whose sandbox is not known, or whose record was lost. Only those of this owner. */

import { label } from '../protocol/labels.ts';
import type { ServiceSpec } from '../protocol/service-spec.ts';
import type { Spec } from '../protocol/spec.ts';
import type { SandboxRecord, ServiceRecord } from './records.ts';
import type { SandboxWorld } from './world.ts';

type World = Pick<SandboxWorld, 'services' | 'engine' | 'owner'>;

/** Their daemon was killed, and what they belong to is gone. Networks after what is on them. */
export async function sweepOrphans(
  { services, engine, owner }: World,
  isKnown: (sandboxId: string) => boolean,
): Promise<void> {
  const orphan = ({ labels }: { readonly labels: Readonly<Record<string, string>> }): boolean =>
    !isKnown(labels[label.id] ?? '');
  await Promise.all((await services.list(owner)).filter(orphan).map(({ id }) => engine.remove(id)));
  const networks = (await services.networks(owner)).filter(orphan);
  await Promise.all(networks.map(({ id }) => services.removeNetwork(id)));
}

/** What the engine still has of a sandbox whose record was lost. All of it is stopped. */
export async function foundServices(
  { services, engine, owner }: World,
  sandboxId: string,
  spec: Spec,
): Promise<Pick<SandboxRecord, 'network' | 'services'>> {
  const mine = ({ labels }: { readonly labels: Readonly<Record<string, string>> }): boolean =>
    labels[label.id] === sandboxId;
  const network = (await services.networks(owner)).find(mine);
  const containers = (await services.list(owner)).filter(mine);
  await Promise.all(containers.map(({ id }) => engine.stop(id, 0)));
  const known =
    (required: boolean) =>
    ({ name, image }: ServiceSpec): ServiceRecord => {
      const found = containers.find(({ labels }) => labels[label.service] === name);
      return {
        name,
        required,
        image,
        state: 'STOPPED',
        ...(found === undefined ? {} : { containerId: found.id }),
      };
    };
  return {
    services: [
      ...(spec.required_services ?? []).map(known(true)),
      ...(spec.optional_services ?? []).map(known(false)),
    ],
    ...(network === undefined ? {} : { network: { id: network.id, name: network.name, subnet: '' } }),
  };
}
