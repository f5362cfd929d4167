import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { type EngineVersion, isPodman } from './version.ts';

export interface EngineInfo {
  /** Docker keeps it with its data. Podman makes another one for each answer. */
  readonly id: string;
  readonly name: string;
  readonly operatingSystem: string;
  readonly kernelVersion: string;
  readonly storageDriver: string;
  /** The file system below the storage driver: `extfs`, `xfs`. Empty: not reported. */
  readonly backingFilesystem: string;
  readonly dataRoot: string;
  readonly cgroupVersion: string;
  readonly cgroupDriver: string;
  readonly runtimes: readonly string[];
  readonly defaultRuntime: string;
  /** As the engine lists them: `name=seccomp,profile=default`, `name=userns`, `name=rootless`. */
  readonly securityOptions: readonly string[];
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly limits: {
    readonly memory: boolean;
    readonly cpu: boolean;
    readonly pids: boolean;
    readonly swap: boolean;
  };
  readonly warnings: readonly string[];
}

interface InfoBody {
  readonly ID?: string;
  readonly Name: string;
  readonly OperatingSystem: string;
  readonly KernelVersion: string;
  readonly Driver: string;
  readonly DriverStatus?: readonly (readonly [string, string])[] | null;
  readonly DockerRootDir: string;
  readonly CgroupVersion?: string;
  readonly CgroupDriver: string;
  readonly Runtimes?: Record<string, unknown>;
  readonly DefaultRuntime: string;
  readonly SecurityOptions?: string[] | null;
  readonly NCPU: number;
  readonly MemTotal: number;
  readonly MemoryLimit: boolean;
  readonly CpuCfsQuota: boolean;
  readonly PidsLimit: boolean;
  readonly SwapLimit: boolean;
  readonly Warnings?: string[] | null;
}

export async function engineInfo(
  connection: EngineConnection,
  options: CallOptions = {},
): Promise<EngineInfo> {
  return await connection.json<InfoBody, EngineInfo>(
    { method: 'GET', path: '/info', ...options },
    (body) => ({
      id: body.ID ?? '',
      name: body.Name,
      operatingSystem: body.OperatingSystem,
      kernelVersion: body.KernelVersion,
      storageDriver: body.Driver,
      backingFilesystem: body.DriverStatus?.find(([name]) => name === 'Backing Filesystem')?.[1] ?? '',
      dataRoot: body.DockerRootDir,
      cgroupVersion: body.CgroupVersion ?? '1',
      cgroupDriver: body.CgroupDriver,
      runtimes: Object.keys(body.Runtimes ?? {}),
      defaultRuntime: body.DefaultRuntime,
      securityOptions: body.SecurityOptions ?? [],
      cpus: body.NCPU,
      memoryBytes: body.MemTotal,
      limits: {
        memory: body.MemoryLimit,
        cpu: body.CpuCfsQuota,
        pids: body.PidsLimit,
        swap: body.SwapLimit,
      },
      warnings: body.Warnings ?? [],
    }),
  );
}

/**
 * The runtimes that a container can be given. SECURITY: Podman names all of its configuration, and its Docker-compatible API ignores the one that
 * a request names: the container gets the default, and would be taken for more isolated than it is.
 * https://github.com/containers/podman/issues/28429 is about its own API; the compatible one has no place for it either.
 */
export function usableRuntimes(
  { runtimes, defaultRuntime }: Pick<EngineInfo, 'runtimes' | 'defaultRuntime'>,
  version: EngineVersion,
): readonly string[] {
  return isPodman(version) ? [defaultRuntime].filter((name) => name !== '') : runtimes;
}
