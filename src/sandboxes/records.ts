/** What is remembered of a sandbox and of an exec. The store writes it down as it is; views show a part of it. */

import type { BoxPlan } from '../policy/box-plan.ts';
import type { Stub } from '../policy/held-paths.ts';
import type { ErrorCode, ErrorDetails, ErrorKind } from '../protocol/errors.ts';
import type { ExecId, SandboxId } from '../protocol/ids.ts';
import type { EgressSpec, Spec } from '../protocol/spec.ts';
import type { ExecState, SandboxState, ServiceState } from '../protocol/states.ts';
import type { PublishedPort } from './bound-port.ts';

/** The disk limit that a sandbox exceeded. */
export interface DiskOver {
  /** `limit`: its own limit. `reserve`: the engine's disk ran low, and the sandbox grew most. */
  readonly rule: 'limit' | 'reserve';
  readonly of: 'bytes' | 'files';
  /** The limit, or the reserve. */
  readonly limit: number;
  /** By the container over its limit; for the reserve, by all containers of the sandbox. */
  readonly used: number;
  /** Free on the engine's disk, for the reserve. */
  readonly free?: number;
  /**
   * Nothing measured `used`. For the limit: a measurement exceeded its deadline, and this is the most that it may use. For the reserve:
   * measured sizes do not explain what the disk lost, and the sandbox wrote this much.
   */
  readonly estimated?: boolean;
  /** The service over its limit; absent: the sandbox itself. */
  readonly service?: string;
}

export interface SandboxRecord {
  readonly id: SandboxId;
  readonly name: string;
  readonly state: SandboxState;
  readonly reason?: string;
  /** Of the last event about it. */
  readonly sequence: number;
  readonly createdAt: string;
  readonly startedAt?: string;
  readonly stoppedAt?: string;
  readonly spec: Spec;
  /** As it was asked for, and its digest when it was resolved. */
  readonly image: string;
  readonly imageId?: string;
  readonly imageEnv: Readonly<Record<string, string>>;
  /** What was approved of the workspace's Dockerfile, if somebody did. */
  readonly approvedDockerfile?: string;
  /** What it gets, decided once, when it was asked for. */
  readonly plan: BoxPlan;
  readonly isolation: {
    readonly engine: string;
    readonly engineVersion: string;
    /** `strongest` until one is chosen. */
    readonly runtime: string;
    readonly weaker?: readonly string[];
  };
  readonly ephemeral: boolean;
  readonly detached: boolean;
  readonly containerName: string;
  readonly containerId?: string;
  /** The sandbox was ready in this container, so nothing is missing in it. False from the creation of a container until then. */
  readonly isFilled?: boolean;
  /** Of its services. */
  readonly network?: { readonly id: string; readonly name: string; readonly subnet: string };
  /** What this machine can reach of it. */
  readonly ports?: readonly PublishedPort[];
  /** Those that it was begun with; required ones first. */
  readonly services?: readonly ServiceRecord[];
  /** What was put, or is about to be put, into its workspace to be mounted on. In the order in which they were made. */
  readonly stubs?: readonly Stub[];
  /** What its mounts are binds of since the last start: source to identity. */
  readonly sources?: Readonly<Record<string, string>>;
  /** The disk limit set by `start`; absent: that of the plan. */
  readonly diskBytes?: number | undefined;
  /** Written before the sandbox is stopped for its disk usage, and removed by the next normal start. */
  readonly overDisk?: DiskOver | undefined;
  /** Set during a clean-up run. `brief`: started by a file operation, and stopped after 30 s without use. */
  readonly cleanUp?: 'asked' | 'brief';
  /** What it may reach, where that was changed since it was made. */
  readonly egress?: EgressSpec;
  /** Names that stand for an address inside, in the order of those addresses. */
  readonly egressNames?: readonly string[];
  /** What programs inside are told of the gate: files to trust, phantoms, addresses that stand for services. */
  readonly gateEnv?: Readonly<Record<string, string>>;
  /** What a host proves itself to porter with; hex. */
  readonly token: string;
  /** Of the last host that connected. */
  readonly epoch: number;
}

export interface ServiceRecord {
  readonly name: string;
  readonly required: boolean;
  /** As it was asked for. */
  readonly image: string;
  readonly state: ServiceState;
  /** Why it failed. */
  readonly reason?: string;
  readonly containerId?: string;
}

export interface ExecRecord {
  readonly id: ExecId;
  readonly sandboxId: SandboxId;
  /** The number of its stream in the porter protocol, from one start of the sandbox to the next. */
  readonly stream: number;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly tty: boolean;
  readonly background: boolean;
  /** The sandbox's own command. */
  readonly main: boolean;
  readonly reason: string;
  readonly startedAt: string;
  /** Its deadline and grace: porter has ended it by then. Absent: it has none. */
  readonly endsWithinMs?: number;
  readonly state: ExecState;
  readonly pid?: number;
  readonly endedAt?: string;
  readonly exitCode?: number;
  readonly signal?: number;
  readonly timedOut?: boolean;
  readonly oomKilled?: boolean;
  readonly memoryLimitExceeded?: boolean;
  readonly killed?: boolean;
  readonly outputIncomplete?: boolean;
  readonly leftBehind?: number;
  readonly userCpuMs?: number;
  readonly systemCpuMs?: number;
  readonly maxRssBytes?: number;
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  /** Why it was refused or lost. */
  readonly error?: {
    readonly code: ErrorCode;
    readonly kind: ErrorKind;
    readonly message: string;
    readonly advice: string;
    readonly details?: ErrorDetails;
  };
}

/** Path (its bytes as base64) to its mark, as `baseline.ts` writes it. */
export type Marks = Readonly<Record<string, string>>;

/** A tree as it was. */
export interface Manifest {
  readonly marks: Marks;
  /** Files that said what is left out, as they were when it was copied; bytes as base64. */
  readonly patternFiles: readonly {
    readonly folder: string;
    readonly name: string;
    readonly content: string;
  }[];
}
