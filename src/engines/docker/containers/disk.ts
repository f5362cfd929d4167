import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** The places that a container writes to. */
export interface ContainerDisk {
  /** The storage option `size`, as requested. */
  readonly storageSize?: string;
  /** The overlay's upper folder on the engine's machine, if the storage driver has one. */
  readonly upperFolder?: string;
  /** The first process, as the engine's machine numbers it. Absent: the container does not run. */
  readonly pid?: number;
  /** Targets of folders of the host. */
  readonly binds: readonly string[];
  /** Writable volumes, with their folder on the engine's machine. */
  readonly volumes: readonly { readonly name: string; readonly folder: string }[];
}

interface DiskBody {
  readonly State?: { readonly Pid?: number };
  readonly HostConfig: { readonly StorageOpt?: Record<string, string> | null };
  readonly GraphDriver?: { readonly Data?: { readonly UpperDir?: string } | null } | null;
  readonly Mounts?: readonly {
    readonly Type: string;
    readonly Name?: string;
    readonly Source: string;
    readonly Destination: string;
    readonly RW: boolean;
  }[];
}

export async function containerDisk(
  connection: EngineConnection,
  id: string,
  options: CallOptions = {},
): Promise<ContainerDisk> {
  return await connection.json<DiskBody, ContainerDisk>(
    { method: 'GET', path: `/containers/${pathSegment(id)}/json`, ...options },
    ({ State, HostConfig, GraphDriver, Mounts = [] }) => {
      const storageSize = HostConfig.StorageOpt?.['size'];
      const upperFolder = GraphDriver?.Data?.UpperDir;
      return {
        ...(storageSize === undefined ? {} : { storageSize }),
        ...(upperFolder === undefined ? {} : { upperFolder }),
        ...(State?.Pid === undefined || State.Pid === 0 ? {} : { pid: State.Pid }),
        binds: Mounts.filter(({ Type }) => Type === 'bind').map(({ Destination }) => Destination),
        volumes: Mounts.filter(({ Type, RW }) => Type === 'volume' && RW).map(({ Name = '', Source }) => ({
          name: Name,
          folder: Source,
        })),
      };
    },
  );
}
