/** Sandboxes on a Docker engine, behind the port that `sandboxes/` declares. */

import { porterPath, relayUid } from '../../protocol/box.ts';
import { isSallyportError, SallyportError } from '../../protocol/errors.ts';
import { label } from '../../protocol/labels.ts';
import type { BoxEngine, BoxStats, EngineFacts } from '../../sandboxes/ports.ts';
import { boxBody, podmanTraits } from './box-body.ts';
import { boxDiskHold, boxDiskUse, boxDiskWritten } from './box-disk.ts';
import { boxEvents } from './box-events.ts';
import { boxLabels, boxState, knownBox } from './box-state.ts';
import { boxStats } from './box-stats.ts';
import { attachContainer } from './containers/attach.ts';
import { boundPaths } from './containers/bound-paths.ts';
import { execInContainer } from './containers/exec.ts';
import { execDetached } from './containers/exec-detached.ts';
import { inspectContainer } from './containers/inspect.ts';
import { listContainers } from './containers/list.ts';
import { removeContainer } from './containers/remove.ts';
import { startContainer } from './containers/start.ts';
import { containerStats } from './containers/stats.ts';
import { networkTraits } from './network-traits.ts';
import { pauseBox, unpauseBox } from './pause-box.ts';
import { requirePodmanMounts } from './podman-mounts.ts';
import { type PorterProgram, PorterVolumes, porterVolumeName } from './porter-volume.ts';
import { findBox, stopBox } from './stop-box.ts';
import { StorageSize } from './storage-size.ts';
import { sweepStale } from './sweep-stale.ts';
import { engineInfo, usableRuntimes } from './system/info.ts';
import { type EngineVersion, engineVersion, isPodman } from './system/version.ts';
import { listVolumes } from './volumes/list.ts';
import { removeVolume } from './volumes/remove.ts';
import type { CallOptions, EngineConnection } from './wire/connection.ts';

const within = (signal: AbortSignal | undefined): CallOptions => (signal === undefined ? {} : { signal });

const relay = { argv: [porterPath, 'relay'], user: `${relayUid}:${relayUid}` };

export function dockerBoxEngine(
  connection: EngineConnection,
  readPorter: (architecture: string) => Promise<PorterProgram>,
  storage = new StorageSize(connection),
): BoxEngine {
  const volumes = new PorterVolumes(connection);
  let version: Promise<EngineVersion> | undefined;
  const versionOnce = async (): Promise<EngineVersion> => {
    version ??= engineVersion(connection);
    try {
      return await version;
    } catch (error) {
      version = undefined;
      throw error;
    }
  };
  return {
    family: 'docker',
    facts: async (signal) => await engineFacts(connection, await versionOnce(), signal),
    providePorter: async (fillerImage, signal) => {
      const { architecture } = await versionOnce();
      return await volumes.provide(await readPorter(architecture), fillerImage, within(signal));
    },
    sweep: (helpersOlderThanMs) => sweepStale(connection, helpersOlderThanMs),
    create: async (box, signal, refused) => {
      const podman = isPodman(await versionOnce());
      if (podman) requirePodmanMounts(box.mounts, connection.endpoint.startsWith('unix://'));
      const { sysctls } = networkTraits((await versionOnce()).engine);
      const body = podman ? boxBody(box, podmanTraits) : boxBody(box, undefined, sysctls);
      return await storage.create({ name: box.name, body }, box.limits.diskBytes, {
        ...within(signal),
        ...(refused === undefined ? {} : { refused }),
      });
    },
    attach: (id, signal) => attachContainer(connection, id, within(signal)),
    tryAttach: async (id, signal) => {
      // Podman refuses, or takes the stream away again as the container starts.
      const hasRun = isPodman(await versionOnce()) && (await findBox(connection, id))?.status !== 'created';
      return hasRun ? undefined : await attachContainer(connection, id, within(signal));
    },
    openRelay: (id, signal) => execInContainer(connection, id, relay, within(signal)),
    startLender: (id, user) => execDetached(connection, id, { argv: [porterPath, 'lend'], user }),
    start: (id, signal) => startContainer(connection, id, within(signal)),
    stop: (id, graceMs) => stopBox(connection, id, graceMs),
    pause: (id) => pauseBox(connection, id),
    unpause: (id) => unpauseBox(connection, id),
    find: (id) => findBox(connection, id),
    state: async (id) => boxState(await inspectContainer(connection, id)),
    list: async (owner) => (await listContainers(connection, boxLabels(owner))).map(knownBox),
    boundPaths: (stopped) => boundPaths(connection, stopped),
    stats: (id) => statsOf(connection, id),
    events: (owner, signal) => boxEvents(connection, owner, signal),
    remove: (id) => removeContainer(connection, id),
    diskFolder: () => storage.folderHere(),
    diskHold: (id) => boxDiskHold(connection, id),
    diskUse: (id, options) => boxDiskUse(connection, id, options),
    diskWritten: (id, signal) => boxDiskWritten(connection, id, signal),
    volumes: async (owner) => {
      const { architecture } = await versionOnce();
      const current = porterVolumeName((await readPorter(architecture)).hash);
      const own = `${label.owned}=true`;
      const found = [
        ...(await listVolumes(connection, [own, `${label.owner}=${owner}`])),
        ...(await listVolumes(connection, [own, `${label.kind}=porter`])),
      ];
      return found.map((volume) => ({ ...volume, isCurrent: volume.name === current }));
    },
    removeVolume: async (name) => {
      try {
        await removeVolume(connection, name);
        return true;
      } catch (error) {
        if (isSallyportError(error, 'engine_conflict')) return false;
        throw error;
      }
    },
  };
}

async function engineFacts(
  connection: EngineConnection,
  version: EngineVersion,
  signal: AbortSignal | undefined,
): Promise<EngineFacts> {
  const info = await engineInfo(connection, within(signal));
  const { id, defaultRuntime, securityOptions } = info;
  return {
    ...(id === '' || isPodman(version) ? {} : { id }),
    name: isPodman(version) ? 'podman' : 'docker',
    version: version.engine,
    endpoint: connection.endpoint,
    runtimes: usableRuntimes(info, version),
    defaultRuntime,
    rootless: securityOptions.some((option) => option.split(',').includes('name=rootless')),
  };
}

async function statsOf(connection: EngineConnection, id: string): Promise<BoxStats> {
  const stats = boxStats(await containerStats(connection, id));
  if (stats !== undefined) return stats;
  throw new SallyportError('engine_conflict', `box ${id} does not run, so it uses nothing`, {
    details: { box: id },
    advice: 'Start it first.',
  });
}
