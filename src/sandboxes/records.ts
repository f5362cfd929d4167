/** What is remembered of a sandbox and of an exec. The store writes it down as it is; views show a part of it. */

import type { BoxLimits } from '../protocol/box.ts';
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
  readonly user: { readonly uid: number; readonly gid: number; readonly home: string };
  readonly workdir: string;
  readonly limits: BoxLimits;
  readonly profile: 'standard' | 'strict';
  readonly isolation: { readonly engine: string; readonly engineVersion: string; readonly runtime: string };
  readonly ephemeral: boolean;
  readonly detached: boolean;
  readonly containerName: string;
  readonly containerId?: string;
  /** What a host proves itself to porter with; hex. */
  readonly token: string;
  /** Of the last host that connected. */
  readonly epoch: number;
}

export interface ExecRecord {
  readonly id: ExecId;
  readonly sandboxId: SandboxId;
  /** The number of its stream in the porter protocol, and of the start of the sandbox that it belongs to. */
  readonly stream: number;
  readonly bootEpoch: number;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly tty: boolean;
  readonly background: boolean;
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
  readonly error?: { readonly code: string; readonly message: string; readonly advice: string };
}
