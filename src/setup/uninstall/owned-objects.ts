/**
 * Objects in an engine that belong to one state folder, found by their labels, also where its records are lost.
 *
 * SECURITY: nothing without both of our labels is touched (A12). An image that a user built on one of ours inherits them, so only
 * image names that Sallyport gives are removed.
 */

import { listContainers } from '../../engines/docker/containers/list.ts';
import { removeContainer } from '../../engines/docker/containers/remove.ts';
import { engineHoldings, type Holding } from '../../engines/docker/holdings.ts';
import { dockerImageEngine } from '../../engines/docker/image-engine.ts';
import { listImages } from '../../engines/docker/images/list.ts';
import { listNetworks } from '../../engines/docker/networks/list.ts';
import { removeNetwork } from '../../engines/docker/networks/remove.ts';
import { listVolumes } from '../../engines/docker/volumes/list.ts';
import { removeVolume } from '../../engines/docker/volumes/remove.ts';
import type { EngineConnection } from '../../engines/docker/wire/connection.ts';
import { removeDerived } from '../../images/derived-images.ts';
import { removeUnlessUsed } from '../../images/remove-unless-used.ts';
import { label, type OwnedKind } from '../../protocol/labels.ts';

export interface OwnedObject {
  readonly kind: 'container' | 'network' | 'volume' | 'image';
  readonly name: string;
  /** The id of the sandbox that it is a part of. */
  readonly sandbox: string | undefined;
  readonly remove: () => Promise<void>;
}

/** In the order in which they can be removed. */
export async function ownedObjects(
  connection: EngineConnection,
  owner: string,
): Promise<readonly OwnedObject[]> {
  const labels = [`${label.owned}=true`, `${label.owner}=${owner}`] as const;
  const isOwned = (object: { readonly labels: Readonly<Record<string, string>> }): boolean =>
    object.labels[label.owned] === 'true' && object.labels[label.owner] === owner;
  const containers = (await listContainers(connection, labels)).filter(isOwned);
  const networks = (await listNetworks(connection, labels)).filter(isOwned);
  const volumes = (await listVolumes(connection, labels)).filter(isOwned);
  const images = (await listImages(connection, labels)).filter(isOwned);
  return [
    ...containers.map(({ id, names, labels: own }) => ({
      kind: 'container' as const,
      name: names[0] ?? id.slice(0, 12),
      sandbox: own[label.id],
      remove: () => removeContainer(connection, id),
    })),
    ...networks.map(({ id, name, labels: own }) => ({
      kind: 'network' as const,
      name,
      sandbox: own[label.id],
      remove: () => removeNetwork(connection, id),
    })),
    ...volumes.map(({ name, labels: own }) => ({
      kind: 'volume' as const,
      name,
      sandbox: own[label.id],
      remove: () => removeVolume(connection, name),
    })),
    ...images.flatMap(({ id, tags }) => {
      const names = tags.length === 0 ? [id] : tags.filter((tag) => tag.startsWith('sallyport-'));
      return names.map((name) => ({
        kind: 'image' as const,
        name,
        sandbox: undefined,
        // An image that another image or container needs stays.
        remove: async () => {
          const engine = dockerImageEngine(connection);
          await removeDerived(engine, id);
          await removeUnlessUsed(engine, name);
        },
      }));
    }),
  ];
}

/** Images and porter volumes that all users of an engine share. */
export async function sharedCaches(connection: EngineConnection): Promise<number> {
  return (await engineHoldings(connection)).filter((one) => isOurs(one) && isShared(one)).length;
}

/** Names of containers and volumes that are neither one of these owners' nor a shared cache of ours. */
export async function othersObjects(
  connection: EngineConnection,
  owners: readonly string[],
): Promise<readonly string[]> {
  const isOwn = ({ labels }: Holding): boolean => owners.includes(labels[label.owner] ?? '');
  return (await engineHoldings(connection))
    .filter(({ kind }) => kind !== 'image')
    .filter((one) => !(isOurs(one) && (isOwn(one) || isShared(one))))
    .map(({ name }) => name);
}

const sharedKinds: ReadonlySet<OwnedKind> = new Set([
  'porter',
  'porter-filler',
  'image-base',
  'image-test',
  'image-template',
  'image-bootstrap',
  'image-user',
  'image-draft',
  'image-check',
  'build-turn',
]);

const isOurs = ({ labels }: Holding): boolean => labels[label.owned] === 'true';
const isShared = ({ labels }: Holding): boolean => sharedKinds.has(labels[label.kind] as OwnedKind);
