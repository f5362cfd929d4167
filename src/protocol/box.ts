/**
 * A sandbox as an engine is asked to make it: the outcome of policy, in no engine's terms. Every field is decided;
 * an adapter translates and adds nothing of its own.
 */

export interface BoxUser {
  readonly uid: number;
  readonly gid: number;
}

export interface BoxTmpfs {
  readonly target: string;
  readonly sizeBytes: number;
  readonly exec: boolean;
}

/** A folder or a file of the host, seen inside. */
export interface BoxMount {
  /** Absolute, on the engine's machine; it must be there. */
  readonly source: string;
  readonly target: string;
  readonly writable: boolean;
}

export interface BoxLimits {
  readonly memoryBytes: number;
  readonly cpus: number;
  readonly pids: number;
  readonly nofile: number;
  readonly shmBytes: number;
}

export interface BoxRequest {
  readonly name: string;
  readonly image: string;
  readonly user: BoxUser;
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
  /** The engine's default when absent. */
  readonly runtime?: string;
}

/** Where porter's volume is mounted in every sandbox, and the program that becomes its first process. */
export const porterMount = '/.sallyport';
export const porterPath = `${porterMount}/porter`;
