/**
 * What the routes need of the sandboxes, declared by the one who needs it. `sandboxes/` has classes that do this; the
 * routes know no more of them than is written here.
 */

import type { Duplex } from 'node:stream';
import type { Approvals } from '../guard/approvals.ts';
import type { Evaluation } from '../policy/command-risk/risk.ts';
import type { Files } from '../porter/files.ts';
import type { SocketTarget } from '../porter/socket-target.ts';
import type { AuditEntry, AuditLineView, AuditVerdict } from '../protocol/audit.ts';
import type { BoxRequest } from '../protocol/box.ts';
import type { PortSpec } from '../protocol/port-spec.ts';
import type { CreateBody, ExecBody, NetChange } from '../protocol/requests.ts';
import type { KeptSecret, SecretChange, SecretCheckView } from '../protocol/secrets.ts';
import type { SandboxState } from '../protocol/states.ts';
import type {
  EgressLineView,
  ExecResultView,
  ExecView,
  NetView,
  PortView,
  ProvisionSourceView,
  SandboxView,
  StatsView,
  VerifyView,
  WorkspaceScanView,
} from '../protocol/views.ts';
import type { CopiedFolder } from '../sandboxes/copied-workspace.ts';
import type { BoxHome, EventLog, ExecLog } from '../sandboxes/ports.ts';
import type { PrunedThing, PruneOptions } from '../sandboxes/prune.ts';
import type { BroughtBack, WorkspaceChange } from '../sandboxes/workspace-changes.ts';
import type { AuditQuery } from '../store/audit-reader.ts';

export interface SandboxesSurface {
  readonly events: EventLog;
  engineReachable(): Promise<boolean>;
  list(): readonly SandboxSurface[];
  get(reference: string): SandboxSurface;
  create(body: CreateBody, signal?: AbortSignal): Promise<SandboxSurface>;
  explain(
    body: CreateBody,
    signal?: AbortSignal,
  ): Promise<{ readonly box: BoxRequest; readonly home: BoxHome; readonly notes: readonly string[] }>;
  prune(options: PruneOptions): Promise<readonly PrunedThing[]>;
  shutdown(keep: boolean): Promise<void>;
}

export interface SecretsSurface {
  list(): readonly KeptSecret[];
  find(name: string): KeptSecret | undefined;
  set(name: string, change: SecretChange): Promise<KeptSecret>;
  remove(name: string): Promise<void>;
  check(
    name: string,
    options: { readonly ask: boolean; readonly signal: AbortSignal },
  ): Promise<SecretCheckView>;
}

export interface GuardSurface {
  readonly approvals: Approvals;
  /** By the lists of the user's own file, as they are now. */
  judge(text: string, cwd: string | undefined): Promise<Evaluation>;
  isApprover(token: string): boolean;
  record(entry: AuditEntry): void;
  readonly audit: AuditSurface;
}

/** The log as it is on disk now. */
export interface AuditSurface {
  search(query: AuditQuery): AsyncIterable<AuditLineView>;
  verify(head: string | undefined): Promise<AuditVerdict>;
}

export interface SandboxSurface {
  readonly id: string;
  readonly name: string;
  readonly state: SandboxState;
  /** Another engine than this daemon's holds it. */
  readonly isElsewhere: boolean;
  view(): SandboxView;
  ready(): Promise<void>;
  ensureRunning(): Promise<void>;
  start(options: { readonly cleanUp?: boolean; readonly diskBytes?: number }): Promise<void>;
  stop(graceMs: number): Promise<WorkspaceScanView | undefined>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  remove(options: {
    readonly force: boolean;
    readonly scan?: boolean;
    readonly signal?: AbortSignal;
  }): Promise<WorkspaceScanView | undefined>;
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
  publish(port: PortSpec): Promise<PortView>;
  /** To a program inside. */
  connect(target: SocketTarget, signal?: AbortSignal): Promise<Duplex>;
  unpublish(host: number): Promise<void>;
  serviceLogs(
    service: string,
    options: { readonly tail?: number; readonly follow?: boolean; readonly signal?: AbortSignal },
  ): Promise<AsyncIterable<Buffer>>;
  verify(): Promise<VerifyView>;
  /** Undefined: its workspace is not live. */
  scan(): Promise<WorkspaceScanView | undefined>;
  /** What it may reach, and what the gate decided. `egress_closed` where there is no gate. */
  net(): NetView;
  changeNet(change: NetChange): Promise<NetView>;
  netLog(options: { readonly follow: boolean; readonly signal: AbortSignal }): AsyncIterable<EgressLineView>;
  provisionSource(): ProvisionSourceView;
  hold(): () => void;
  /** What an earlier daemon left of it is known again. Never rejects. */
  readonly recovered: Promise<void>;
}

export interface ExecSurface {
  readonly id: string;
  /** How it ended is known, though it may not be written down yet. */
  readonly known: Promise<unknown>;
  readonly ended: Promise<void>;
  readonly inputBytes: number;
  /** Whenever there are more of them; returns how to stop that. */
  onInputTaken(listener: () => void): () => void;
  view(): ExecView;
  log(): Promise<ExecLog>;
  knownResult(): Promise<ExecResultView>;
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
