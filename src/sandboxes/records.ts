/** What is remembered of a sandbox and of an exec. The store writes it down as it is; views show a part of it. */

import type { BoxPlan } from '../policy/box-plan.ts';
import type { Stub } from '../policy/protected-paths.ts';
import type { ErrorCode, ErrorDetails, ErrorKind } from '../protocol/errors.ts';
import type { ExecId, SandboxId } from '../protocol/ids.ts';
import type { Spec } from '../protocol/spec.ts';
import type { ExecState, SandboxState } from '../protocol/states.ts';

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
  /** What it gets, decided once, when it was asked for. */
  readonly plan: BoxPlan;
  readonly isolation: { readonly engine: string; readonly engineVersion: string; readonly runtime: string };
  readonly ephemeral: boolean;
  readonly detached: boolean;
  readonly containerName: string;
  readonly containerId?: string;
  /** What was put, or is about to be put, into its workspace to be mounted on. In the order in which they were made. */
  readonly stubs?: readonly Stub[];
  /** What its mounts are binds of since the last start: source to identity. */
  readonly sources?: Readonly<Record<string, string>>;
  /** What a host proves itself to porter with; hex. */
  readonly token: string;
  /** Of the last host that connected. */
  readonly epoch: number;
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

/** A tree as it was: path (its bytes as base64) to its mark, as `baseline.ts` writes it. */
export type Manifest = Readonly<Record<string, string>>;
