/** A box in the Engine API's words. Pure: `sally explain` and the tests read what the engine would be sent. */

import { type BoxMount, type BoxRequest, boxHostname, porterMount, porterPath } from '../../protocol/box.ts';
import { cpuQuota } from './cpu-quota.ts';
import { nowhereDns } from './network-traits.ts';
import type { ContainerBody, HostConfigBody, MountBody } from './types.ts';

/** What an engine behind the same API does otherwise. */
export interface BoxEngineTraits {
  /** Podman: one limit in the request puts aside all that its configuration says, and a million open files in their place. */
  readonly limitsReplaceDefaults: boolean;
  /** Podman: a bind with options at all, whatever they say, is not recursive. Without them it is, and private. */
  readonly bindOptionsEndRecursion: boolean;
  /** Podman: with a read-only root it mounts memory that everybody may write to at these places, unless something is there. */
  readonly writableInReadOnlyRoot: readonly string[];
}

const dockerTraits: BoxEngineTraits = {
  limitsReplaceDefaults: false,
  bindOptionsEndRecursion: false,
  writableInReadOnlyRoot: [],
};
export const podmanTraits: BoxEngineTraits = {
  limitsReplaceDefaults: true,
  bindOptionsEndRecursion: true,
  writableInReadOnlyRoot: ['/run', '/var/tmp'],
};

export function boxBody(
  box: BoxRequest,
  traits: BoxEngineTraits = dockerTraits,
  sysctls: Readonly<Record<string, string>> = {},
): ContainerBody {
  const { limits, network } = box;
  return {
    Image: box.image,
    // Replaces the image's own entrypoint and command: porter is the first process of every sandbox.
    Entrypoint: [porterPath],
    Cmd: [
      `--nofile=${limits.nofile}`,
      ...(box.sharesUid === true ? ['--shared-uid'] : []),
      ...(box.borrows === true ? ['--borrow'] : []),
      ...(box.endsWithHost ? ['--exit-with-host'] : []),
    ],
    // Always uid:gid: a bare uid gets gid 0.
    User: `${box.user.uid}:${box.user.gid}`,
    Env: Object.entries(box.env).map(([name, value]) => `${name}=${value}`),
    WorkingDir: box.workingDir,
    Hostname: boxHostname,
    Labels: box.labels,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    OpenStdin: true,
    // Closes porter's stdin when the host's connection ends, however it ends.
    StdinOnce: box.endsWithHost,
    Tty: false,
    StopSignal: 'SIGTERM',
    // An image's health check would be run by the engine, past porter and its filter.
    Healthcheck: { Test: ['NONE'] },
    ...(network === undefined
      ? {}
      : { NetworkingConfig: { EndpointsConfig: { [network.name]: { Aliases: [network.alias] } } } }),
    HostConfig: {
      ...networkPart(box, sysctls),
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      ReadonlyRootfs: box.readOnlyRoot,
      Privileged: false,
      Memory: limits.memoryBytes,
      // Equal to Memory: no swap on top of the limit.
      MemorySwap: limits.memoryBytes,
      ...cpuQuota(limits.cpus),
      PidsLimit: limits.pids,
      ShmSize: limits.shmBytes,
      IpcMode: 'private',
      LogConfig: { Type: 'none' },
      Init: false,
      AutoRemove: box.endsWithHost,
      Tmpfs: memoryMounts(box, traits),
      // No nofile here: an engine whose own hard limit is lower could not start the container; porter lowers it instead.
      // porter sets core to 0 for every program as well, so that it holds where it cannot be asked for here.
      Ulimits: traits.limitsReplaceDefaults ? [] : [{ Name: 'core', Soft: 0, Hard: 0 }],
      Mounts: [
        {
          Type: 'volume',
          Source: box.porterVolume,
          Target: porterMount,
          ReadOnly: true,
          VolumeOptions: { NoCopy: true },
        },
        ...box.mounts.map((mount) => bindMount(mount, traits)),
      ],
      ...(box.runtime === undefined ? {} : { Runtime: box.runtime }),
    },
  };
}

/** porter answers DNS and listens on ports of web servers, as an ordinary user. */
const gatePart = { Dns: ['127.0.0.1'], DnsSearch: ['.'] } as const;
const gateSysctls = { 'net.ipv4.ip_unprivileged_port_start': '0' } as const;

function networkPart(
  { network, asksGate }: BoxRequest,
  ofNetwork: Readonly<Record<string, string>>,
): HostConfigBody {
  const sysctls = { ...(network === undefined ? {} : ofNetwork), ...(asksGate === true ? gateSysctls : {}) };
  return {
    NetworkMode: network?.name ?? 'none',
    // SECURITY: without it an engine puts the resolvers and domains of its machine into the box, also where no question can leave.
    ...(network === undefined && asksGate === true ? {} : nowhereDns),
    ...(asksGate === true ? gatePart : {}),
    ...(Object.keys(sysctls).length === 0 ? {} : { Sysctls: sysctls }),
  };
}

/**
 * SECURITY: nothing, where an engine would put something that can be written to into a read-only root. A mode would not do:
 * runc gives the mount the mode of the image's folder.
 */
function memoryMounts(
  { tmpfs, readOnlyRoot }: BoxRequest,
  { writableInReadOnlyRoot }: BoxEngineTraits,
): Record<string, string> {
  const closed = readOnlyRoot ? writableInReadOnlyRoot : [];
  return Object.fromEntries([
    ...closed.map((target) => [target, 'ro,nosuid,nodev,noexec,size=64k']),
    ...tmpfs.map(({ target, exec, sizeBytes }) => [
      target,
      `rw,nosuid,nodev,${exec ? 'exec' : 'noexec'},size=${sizeBytes},mode=1777`,
    ]),
  ]);
}

/** A bind of this kind whose source is missing is refused; the engine's older way would make an empty folder of root's. */
function bindMount({ source, target, writable }: BoxMount, traits: BoxEngineTraits): MountBody {
  const bind = { Type: 'bind', Source: source, Target: target, ReadOnly: !writable } as const;
  if (writable && traits.bindOptionsEndRecursion) return bind;
  // SECURITY: an engine makes only the top of a tree of mounts read-only. What is mounted further down stays writable, so
  // it is left out; the folder below it is seen instead. Private: nothing mounted on one side appears on the other.
  return { ...bind, BindOptions: { Propagation: 'rprivate', NonRecursive: !writable } };
}
