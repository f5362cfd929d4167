/**
 * A sandbox as an engine is asked to make it: the outcome of policy, in no engine's terms. Every field is decided;
 * an adapter translates and adds nothing of its own.
 */

/** What `hostname` says inside. */
export const boxHostname = 'sallyport';

export interface BoxUser {
  readonly uid: number;
  readonly gid: number;
}

export interface BoxTmpfs {
  readonly target: string;
  readonly sizeBytes: number;
  readonly exec: boolean;
}

/** A file or folder of the host. `source` is a real path: policy has judged it, and links were followed before. */
export interface BoxMount {
  readonly source: string;
  readonly target: string;
  readonly writable: boolean;
}

/**
 * The paths of the host that mounts hold on to: what they are binds of, and the places in another one that they are mounted on. A
 * place that is removed takes its mount with it.
 */
export function hostPlacesOf(mounts: readonly Omit<BoxMount, 'writable'>[]): readonly string[] {
  return mounts.flatMap(({ source, target }) => {
    const around = mounts
      .filter((other) => target.startsWith(`${other.target}/`))
      .sort((a, b) => b.target.length - a.target.length)[0];
    return around === undefined
      ? [source]
      : [source, `${around.source}${target.slice(around.target.length)}`];
  });
}

export interface BoxLimits {
  readonly memoryBytes: number;
  readonly cpus: number;
  readonly pids: number;
  readonly nofile: number;
  readonly shmBytes: number;
  /** Of the root and the volumes, without binds of the host. */
  readonly diskBytes: number;
}

/** Docker's own minimum is 6 MiB; below 16 MiB no interpreter starts. */
export const smallestMemoryBytes = 16 * 2 ** 20;
/** A watched limit has steps of 16 MiB; a smaller limit would mean little. */
export const smallestDiskBytes = 64 * 2 ** 20;
export const usualDiskBytes = 20 * 2 ** 30;

export interface BoxRequest {
  readonly name: string;
  readonly image: string;
  readonly user: BoxUser;
  /**
   * `keep-id`: the engine maps this user to the host user that runs it. Only rootless Podman is asked for it, where a
   * mounted folder would otherwise belong to container uid 0.
   */
  readonly userMapping?: 'keep-id';
  /** The uid is not its own: porter leaves half of what the kernel limits by uid to others. */
  readonly sharesUid?: true;
  /** Its programs get epoll and inotify instances from a lender, which the engine can start. */
  readonly borrows?: true;
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly limits: BoxLimits;
  readonly tmpfs: readonly BoxTmpfs[];
  readonly mounts: readonly BoxMount[];
  readonly readOnlyRoot: boolean;
  /** Ends and is removed when the connection that made it goes away (O3), so that a killed caller leaves nothing. */
  readonly endsWithHost: boolean;
  /** The read-only volume that holds porter; see `porterPath`. */
  readonly porterVolume: string;
  /** Names are asked for at its own loopback, and its user may listen on every port there. */
  readonly asksGate?: true;
  /** The engine's default when absent. */
  readonly runtime?: string;
  /** The network of its services. Absent: it has no network card. */
  readonly network?: BoxNetwork;
}

/** A network that one sandbox and its services have for themselves. Nothing on it leads out. */
export interface BoxNetwork {
  readonly name: string;
  /** The host name by which the others on it find this one. */
  readonly alias: string;
}

/** Without `nofile` it gets what the engine gives: one whose own hard limit is lower could not start it. */
export type ServiceLimits = Omit<BoxLimits, 'nofile'> & { readonly nofile?: number };

/** The container of a service. What is not here is the same for all of them. */
export interface ServiceRequest {
  readonly name: string;
  readonly image: string;
  readonly network: BoxNetwork;
  readonly env: Readonly<Record<string, string>>;
  /** Absent: the image's own. */
  readonly command?: readonly string[];
  /** All that it keeps; see `policy/services.ts`. */
  readonly capabilities: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly limits: ServiceLimits;
}

/** In the home inside: what the gate gives programs to find it and to trust it by. */
export const gateFolder = '.sallyport';
/** In `gateFolder`: the HOME of the browser that is started from outside, which trusts the sandbox's CA. */
export const browserHome = 'browser';

/** Where porter's volume is mounted in every sandbox, and the program that becomes its first process. */
export const porterMount = '/.sallyport';
export const porterPath = `${porterMount}/porter`;
/**
 * Who `porter relay` runs as: no sandbox's own user. SECURITY: an engine starts the relay, so porter's filter does not hold it.
 * A program of the same user could trace it and act without the filter, or end it.
 */
export const relayUid = 64_256;
