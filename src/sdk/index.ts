/** What programs import: `import { Sandbox } from 'sallyport'`. It speaks to the daemon and has nothing of it inside. */

export { type ErrorCode, type ErrorKind, isSallyportError, SallyportError } from '../protocol/errors.ts';
export type { ApplyOptions, ApplyResult } from './apply-changes.ts';
export type { Conflict, LeftOut } from './apply-plan.ts';
export { type Approval, Approvals } from './approvals.ts';
export { Audit, type AuditLine, type AuditSearch } from './audit.ts';
export type { BringOptions, BroughtCommits } from './bring-commits.ts';
export type { ByteChannel } from './byte-channel.ts';
export { type ConnectionOptions, DaemonClient } from './client.ts';
export type { FileDiff } from './diff-changes.ts';
export { type EventOptions, followEvents, type SandboxEvent } from './events.ts';
export type { ExecProcess } from './exec-process.ts';
export {
  type CommandEvaluation,
  evaluate,
  type GuardCommand,
  type GuardOptions,
  type GuardResult,
  guard,
} from './guard.ts';
export {
  type BuildOptions,
  type BuiltImage,
  type DockerfileInfo,
  type ImageInfo,
  Images,
  type ImageWhy,
  type PrunedImage,
} from './images.ts';
export type { InjectedFile, Injection, InjectOptions } from './inject-files.ts';
export { dockerfileName, type ForbiddenMountSource, forbiddenMountSources } from './known-names.ts';
export { CommandFailedError, type ExecInfo, type ExecOutcome } from './outcome.ts';
export { type PruneOptions, type PruneResult, prune } from './prune.ts';
export {
  type Connection,
  type CreateOptions,
  type ExecOptions,
  Sandbox,
  type SandboxInfo,
  type SandboxSpec,
  type SandboxStats,
  type SpawnOptions,
  type Verification,
  type WorkspaceScan,
} from './sandbox.ts';
export type { BrowserEndpoint, BrowserOptions, BrowserStart, SandboxBrowser } from './sandbox-browser.ts';
export type {
  BoxPath,
  FileChange,
  FileEntry,
  FileInfo,
  SandboxFiles,
  WriteFileOptions,
} from './sandbox-files.ts';
export type { EgressDecision, NetInfo, SandboxNet } from './sandbox-net.ts';
export type { NewPreview, Preview, PreviewOptions, PublishedPort, SandboxPorts } from './sandbox-ports.ts';
export { type SecretCheck, type SecretInfo, type SecretOptions, Secrets } from './secrets.ts';
export { requireUsableSecrets, type UsableOptions } from './usable-secrets.ts';
export type { ChangeSide, WorkspaceChange, WorkspaceChanges } from './workspace-changes.ts';
export type { SkippedEntry, WrittenTree } from './write-tree.ts';
