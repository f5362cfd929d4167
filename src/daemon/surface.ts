/**
 * What the routes need of the sandboxes, declared by the one who needs it. `sandboxes/` has classes that do this; the
 * routes know no more of them than is written here.
 */

import type { Files } from '../porter/files.ts';
import type { BoxRequest } from '../protocol/box.ts';
import type { CreateBody, ExecBody } from '../protocol/requests.ts';
import type { SandboxState } from '../protocol/states.ts';
import type { ExecResultView, ExecView, SandboxView, StatsView, VerifyView } from '../protocol/views.ts';
import type { CopiedFolder } from '../sandboxes/copied-workspace.ts';
import type { EventLog, ExecLog } from '../sandboxes/ports.ts';
import type { BroughtBack, WorkspaceChange } from '../sandboxes/workspace-changes.ts';

export interface PrunedSandbox {
  readonly id: string;
  readonly name: string;
  readonly why: string;
  readonly removed: boolean;
}

export interface SandboxesSurface {
  readonly events: EventLog;
  engineReachable(): Promise<boolean>;
  list(): readonly SandboxSurface[];
  get(reference: string): SandboxSurface;
  create(body: CreateBody): Promise<SandboxSurface>;
  explain(body: CreateBody): Promise<BoxRequest>;
  prune(options: { readonly dryRun: boolean }): Promise<readonly PrunedSandbox[]>;
  shutdown(keep: boolean): Promise<void>;
}

export interface SandboxSurface {
  readonly id: string;
  readonly name: string;
  readonly state: SandboxState;
  view(): SandboxView;
  ready(): Promise<void>;
  ensureRunning(): Promise<void>;
  start(): Promise<void>;
  stop(graceMs: number): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  remove(options: { readonly force: boolean }): Promise<void>;
  exec(body: ExecBody): Promise<ExecSurface>;
  execs(): readonly ExecSurface[];
  getExec(reference: string): ExecSurface;
  files(): Promise<Files>;
  changes(
    signal?: AbortSignal,
  ): Promise<{ readonly folder: CopiedFolder; readonly changes: readonly WorkspaceChange[] }>;
  baseContent(path: Buffer): Promise<Buffer>;
  moveBaseline(news: readonly BroughtBack[]): Promise<void>;
  stats(): Promise<StatsView>;
  verify(): Promise<VerifyView>;
  hold(): () => void;
  /** What an earlier daemon left of it is known again. Never rejects. */
  readonly recovered: Promise<void>;
}

export interface ExecSurface {
  readonly id: string;
  readonly ended: Promise<void>;
  readonly inputBytes: number;
  view(): ExecView;
  log(): Promise<ExecLog>;
  result(): Promise<ExecResultView>;
  write(data: Buffer): Promise<void>;
  endStdin(): void;
  signal(name: string): void;
  kill(graceMs: number): Promise<void>;
  resize(rows: number, columns: number): void;
  hold(): () => void;
  /** Keeps all of its output until `readerCame`. */
  expectReader(): Promise<void>;
  readerCame(): void;
}
