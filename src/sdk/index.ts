/** What programs import: `import { Sandbox } from 'sallyport'`. It speaks to the daemon and has nothing of it inside. */

export { type ErrorCode, type ErrorKind, isSallyportError, SallyportError } from '../protocol/errors.ts';
export type { ApplyOptions, ApplyResult } from './apply-changes.ts';
export type { Conflict, LeftOut } from './apply-plan.ts';
export type { ByteChannel } from './byte-channel.ts';
export { type ConnectionOptions, DaemonClient } from './client.ts';
export type { FileDiff } from './diff-changes.ts';
export { type EventOptions, followEvents, type SandboxEvent } from './events.ts';
export type { ExecProcess } from './exec-process.ts';
export type { InjectedFile, Injection, InjectOptions } from './inject-files.ts';
export { CommandFailedError, type ExecInfo, type ExecOutcome } from './outcome.ts';
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
} from './sandbox.ts';
export type {
  BoxPath,
  FileChange,
  FileEntry,
  FileInfo,
  SandboxFiles,
  WriteFileOptions,
} from './sandbox-files.ts';
export type { ChangeSide, WorkspaceChange, WorkspaceChanges } from './workspace-changes.ts';
export type { SkippedEntry, WrittenTree } from './write-tree.ts';
