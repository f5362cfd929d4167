/** The parts of the Engine API's own shapes that we send or read. They must not be imported outside this folder. */

export type Labels = Readonly<Record<string, string>>;

export interface MountBody {
  readonly Type: 'volume' | 'bind' | 'tmpfs';
  readonly Source?: string;
  readonly Target: string;
  readonly ReadOnly?: boolean;
  readonly VolumeOptions?: { readonly NoCopy?: boolean };
  readonly BindOptions?: { readonly Propagation: 'rprivate'; readonly NonRecursive: boolean };
}

export interface HostConfigBody {
  readonly NetworkMode?: string;
  readonly Dns?: readonly string[];
  readonly DnsSearch?: readonly string[];
  readonly DnsOptions?: readonly string[];
  readonly Sysctls?: Readonly<Record<string, string>>;
  readonly CapDrop?: readonly string[];
  readonly CapAdd?: readonly string[];
  readonly SecurityOpt?: readonly string[];
  readonly ReadonlyRootfs?: boolean;
  readonly Privileged?: false;
  readonly Memory?: number;
  readonly MemorySwap?: number;
  readonly CpuPeriod?: number;
  readonly CpuQuota?: number;
  readonly PidsLimit?: number;
  readonly ShmSize?: number;
  readonly Tmpfs?: Readonly<Record<string, string>>;
  readonly Ulimits?: ReadonlyArray<{ readonly Name: string; readonly Soft: number; readonly Hard: number }>;
  readonly Mounts?: readonly MountBody[];
  readonly IpcMode?: string;
  readonly LogConfig?: { readonly Type: string; readonly Config?: Labels };
  readonly StorageOpt?: { readonly size: string };
  readonly Runtime?: string;
  readonly Init?: boolean;
  readonly AutoRemove?: boolean;
  readonly OomScoreAdj?: number;
}

export interface ContainerBody {
  readonly Image: string;
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly User?: string;
  readonly Env?: readonly string[];
  readonly WorkingDir?: string;
  readonly Hostname?: string;
  readonly Labels?: Labels;
  readonly AttachStdin?: boolean;
  readonly AttachStdout?: boolean;
  readonly AttachStderr?: boolean;
  readonly OpenStdin?: boolean;
  readonly StdinOnce?: boolean;
  readonly Tty?: boolean;
  readonly StopSignal?: string;
  readonly Healthcheck?: { readonly Test: readonly ['NONE'] };
  readonly NetworkDisabled?: boolean;
  readonly HostConfig?: HostConfigBody;
  readonly NetworkingConfig?: {
    readonly EndpointsConfig: Readonly<Record<string, { readonly Aliases: readonly string[] }>>;
  };
}
