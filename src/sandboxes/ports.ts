/** What sandboxes need of the world, declared by the one who needs it. Engines, images and the store implement it. */

import type { Duplex, Readable } from 'node:stream';
import type { FolderUse } from '../lib/folder-use.ts';
import type { LoadedEntry } from '../lib/host-tree.ts';
import type { Progress } from '../lib/progress.ts';
import type { Channel } from '../porter/output-sink.ts';
import type { Porter } from '../porter/porter.ts';
import type { BoxRequest, BoxUser } from '../protocol/box.ts';
import type { EventDraft, SallyEvent } from '../protocol/events.ts';
import type { ExecId, SandboxId } from '../protocol/ids.ts';
import type { OwnedKind } from '../protocol/labels.ts';
import type { EgressSpec } from '../protocol/spec.ts';
import type { EgressLineView, NetView, VerifyCheck } from '../protocol/views.ts';
import type { ExecRecord, Manifest, SandboxRecord } from './records.ts';

export type BoxStatus = 'created' | 'running' | 'paused' | 'stopped';

export interface BoxState {
  readonly running: boolean;
  readonly exitCode: number;
  readonly oomKilled: boolean;
  readonly status: BoxStatus;
}

/** A box as the engine lists it. */
export interface KnownBox {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly status: BoxStatus;
  readonly createdMs: number;
}

/** What happened to a box, told by the engine. */
export interface BoxEvent {
  readonly boxId: string;
  readonly kind: 'started' | 'ended' | 'out-of-memory' | 'paused' | 'resumed' | 'removed';
  /** Of `ended`. */
  readonly exitCode?: number;
}

export interface BoxStats {
  readonly memoryBytes: number;
  readonly memoryLimitBytes: number;
  readonly cpuSeconds: number;
  readonly pids: number;
}

/** The disk limit that the kernel enforces for a box. */
export interface DiskHold {
  /** The kernel refuses writes to the root beyond this. Absent: no limit. */
  readonly rootBytes?: number;
  /** The box has writable volumes, which the limit does not cover. */
  readonly hasVolumes: boolean;
}

/** The engine refused an exact limit just now, so this box is watched. */
export type DiskNote = (reason: string) => void;

export interface DiskUse extends FolderUse {
  /** Deleted files that are still open count. */
  readonly hasDeleted: boolean;
}

export interface DiskUseOptions {
  readonly of: 'bytes' | 'files';
  readonly signal?: AbortSignal;
}

export interface EngineFacts {
  /** The same under each of its addresses, as long as it keeps its data. Absent: it has none. */
  readonly id?: string;
  /** `docker`, `podman`. */
  readonly name: string;
  readonly version: string;
  readonly endpoint: string;
  readonly runtimes: readonly string[];
  readonly defaultRuntime: string;
  readonly rootless: boolean;
  /** Which limits it can hold a box to. Absent: all. */
  readonly limits?: { readonly memory: boolean; readonly cpus: boolean; readonly pids: boolean };
  /** What it isolates less than a container engine, in words. Absent: nothing. */
  readonly weaker?: readonly string[];
}

/** The stream to a sandbox's first process. It always reads; the porter protocol bounds what may be under way. */
export interface BoxDoor extends Duplex {
  /** The last of what the first process wrote to stderr. */
  readonly stderrTail: string;
}

/** Which of the ways to make sandboxes: what was made by one is nothing to the other. */
export type EngineFamily = 'docker' | 'bubblewrap';

export interface BoxEngine {
  readonly family: EngineFamily;
  facts(signal?: AbortSignal): Promise<EngineFacts>;
  /** Makes the volume that delivers porter, or verifies the one that is there; returns its name. */
  providePorter(fillerImage: string, signal?: AbortSignal): Promise<string>;
  /**
   * Removes what a maker left that was killed in between, and that is no box: what was begun here, and helpers of nobody's that
   * were created longer than `helpersOlderThanMs` ago and never started. Called once, before anything is made. Returns how many.
   */
  sweep(helpersOlderThanMs: number): Promise<number>;
  create(box: BoxRequest, signal?: AbortSignal, note?: DiskNote): Promise<string>;
  /** Before its first start. */
  attach(id: string, signal?: AbortSignal): Promise<BoxDoor>;
  /** Before any start. Undefined: this engine cannot, because the box has run before; then `openRelay` is the way in. */
  tryAttach(id: string, signal?: AbortSignal): Promise<BoxDoor | undefined>;
  /** Another way in, to a box that runs: attaching a second time loses and mixes up bytes. */
  openRelay(id: string, signal?: AbortSignal): Promise<BoxDoor>;
  /** Starts `porter lend` as this user in a box that runs. Absent: this engine has no other user to start it as. */
  startLender?(id: string, user: BoxUser): Promise<void>;
  start(id: string, signal?: AbortSignal): Promise<void>;
  /** TERM, and KILL after the grace. Idempotent: one that does not run or is not there is no error. */
  stop(id: string, graceMs: number): Promise<void>;
  pause(id: string): Promise<void>;
  unpause(id: string): Promise<void>;
  /** Undefined: there is no such box. */
  find(id: string): Promise<BoxState | undefined>;
  state(id: string): Promise<BoxState>;
  /** All boxes of this owner, running or not. */
  list(owner: string): Promise<readonly KnownBox[]>;
  /** What is bound into boxes that run or are about to, whoever's they are: paths of the host. The caller knows `stopped` as stopped. */
  boundPaths(stopped?: string): Promise<ReadonlySet<string>>;
  stats(id: string): Promise<BoxStats>;
  /** From now on, until aborted; ends with an error when the engine goes away. */
  events(owner: string, signal: AbortSignal): AsyncIterable<BoxEvent>;
  /** Idempotent; runs to its end whatever the caller does (A13). */
  remove(id: string): Promise<void>;
  /** A folder of this machine on the disk that boxes write to. Undefined: the disk is not on this machine. */
  diskFolder(): Promise<string | undefined>;
  /** Undefined: there is no such box. */
  diskHold(id: string): Promise<DiskHold | undefined>;
  /** Disk usage of its root and volumes, running or not; walks all files. 0 for a missing box. */
  diskUse(id: string, options: DiskUseOptions): Promise<DiskUse>;
  /**
   * Bytes that its processes wrote to disks since they started, also to binds and to files that were removed. Costs no walk. Undefined: not
   * known.
   */
  diskWritten(id: string, signal?: AbortSignal): Promise<number | undefined>;
  /** Those of this owner, and the ones with porter, which users share. */
  volumes(owner: string): Promise<readonly KnownVolume[]>;
  /** False: something uses it. One that is not there is no error. */
  removeVolume(name: string): Promise<boolean>;
}

export interface KnownVolume {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAt: string;
  /** It holds the porter of this program. */
  readonly isCurrent: boolean;
}

export interface ProvidedImage {
  readonly reference: string;
  readonly id: string;
  /** What the image's own ENV says. */
  readonly env: Readonly<Record<string, string>>;
}

export interface BoxHome extends BoxUser {
  readonly home: string;
  /** Made if it is missing, and owned by the user. */
  readonly workdir: string;
  /** The same for more of them. */
  readonly folders?: readonly string[];
  /** Empty files of the user's own, in the place of whatever is there but a folder. */
  readonly files?: readonly string[];
  /** Names are asked for at this address, where the engine leaves the image's own `/etc/resolv.conf` as it is. */
  readonly resolver?: string;
}

/** What says which image a sandbox gets: the first that is there (O1). */
export interface ImageChoice {
  /** By name. */
  readonly image?: string | undefined;
  /** A folder that may have a Dockerfile of its own, and what was approved of it. */
  readonly workspace?: string | undefined;
  readonly approvedDockerfile?: string | undefined;
  readonly build?:
    | {
        readonly args?: Readonly<Record<string, string>> | undefined;
        readonly network?: 'default' | 'none' | undefined;
      }
    | undefined;
  /** What was built of it before: used if it is still there. */
  readonly built?: Pick<ProvidedImage, 'reference' | 'id'> | undefined;
  /** An agent with a template. */
  readonly agent?: string | undefined;
  /** By name, in the place of the base image. */
  readonly fallback?: string | undefined;
}

export interface ProvideOptions {
  readonly progress: Progress;
  readonly signal?: AbortSignal;
  /** For what is worth knowing and stops nothing. */
  readonly note?: (code: string, message: string) => void;
}

/** Images as sandboxes use them. */
export interface BoxImages {
  /**
   * The image that was named, pulled on first use (C6); else one built of the workspace's Dockerfile (O1), if that was approved; else
   * the agent's; else the fallback, pulled likewise; else the base image, which must be there: making it needs consent.
   */
  provide(choice: ImageChoice, options: ProvideOptions): Promise<ProvidedImage>;
  /** The same image with a passwd and a group entry, a home and a working directory for this user; made once, then cached. */
  forUser(image: ProvidedImage, home: BoxHome, signal?: AbortSignal): Promise<string>;
  /** Takes away those of them whose own image is gone. Returns how many. */
  pruneDerived(): Promise<number>;
}

/** The numbered events of one owner's daemons. */
export interface EventLog {
  /** Of the last event; 0 when there was none. */
  readonly sequence: number;
  /** Written before it returns, and before anybody hears of it. */
  append(draft: EventDraft): SallyEvent;
  /** Everything after `since`, then what comes, until aborted. `events_gone` if that is no longer kept. A slow reader slows nobody. */
  follow(since: number, signal: AbortSignal): AsyncIterable<SallyEvent>;
}

export interface Captured {
  readonly data: Buffer;
  readonly truncated: boolean;
  readonly totalBytes: number;
}

/** A stretch of output, or of what is no longer kept. */
export type LogPiece =
  | { readonly channel: Channel; readonly offset: number; readonly data: Buffer }
  | { readonly channel: Channel; readonly offset: number; readonly droppedBytes: number };

export interface LogReadOptions {
  /** Where to begin in each channel; absent: at the beginning. */
  readonly from?: Readonly<Record<Channel, number>>;
  /** Go on with what comes until the exec is over. */
  readonly follow?: boolean;
  /** Nothing that this reader has not read yet is dropped: the program waits instead. */
  readonly hold?: boolean;
  readonly signal?: AbortSignal;
}

/** The output of one exec on disk: all of it up to a bound, then its head and its tail. */
export interface ExecLog {
  /** How much of each channel is safe. */
  readonly stored: Readonly<Record<Channel, number>>;
  /** Resolves when the bytes are in the file. `offset` is where they belong in their channel. */
  write(channel: Channel, offset: number, data: Buffer): Promise<void>;
  read(options?: LogReadOptions): AsyncIterable<LogPiece>;
  /** Head and tail of a channel, or of both in the order of arrival, at most `limitBytes`. */
  capture(channel: Channel | 'output', limitBytes: number): Promise<Captured>;
  /** The exec is over: readers that follow come to their end. */
  end(): Promise<void>;
}

export interface AuditLine {
  readonly sandbox: string;
  readonly exec: string;
  readonly argv: readonly string[];
  readonly where: string;
  readonly reason: string;
  /** `started`, and later how it ended. */
  readonly outcome: string;
  readonly durationMs?: number;
}

export interface BaselineWriter {
  /** Where the next byte will be. */
  readonly bytes: number;
  write(chunk: Uint8Array): Promise<void>;
  /** All of it is in the file when this resolves. Idempotent. */
  close(): Promise<void>;
}

export interface SandboxStore {
  readonly events: EventLog;
  load(): Promise<readonly SandboxRecord[]>;
  /** Replaces the record as a whole; safe when it returns. */
  save(record: SandboxRecord): void;
  remove(id: SandboxId): Promise<void>;
  /** Where the copy of a tool's folder is. */
  shadowFolder(id: SandboxId, mountId: string): string;
  /** Makes that copy, anew if it is there, as this user's where that can be done. It goes with the sandbox. */
  makeShadow(
    id: SandboxId,
    mountId: string,
    entries: AsyncIterable<LoadedEntry>,
    owner: BoxUser,
  ): Promise<void>;
  /** What a workspace was like when the sandbox was made, and what folders of tools were. `of` is the workspace where it is absent. */
  saveManifest(id: SandboxId, manifest: Manifest, of?: 'workspace' | 'tools'): Promise<void>;
  loadManifest(id: SandboxId, of?: 'workspace' | 'tools'): Promise<Manifest | undefined>;
  /** The content of what was copied in; goes on where the last writer ended. One writer at a time. */
  openBaseline(id: SandboxId): Promise<BaselineWriter>;
  readBaseline(id: SandboxId, offset: number, sizeBytes: number): AsyncIterable<Buffer>;
  /** All execs that are remembered of a sandbox, oldest first; the last word on each. */
  loadExecs(id: SandboxId): Promise<readonly ExecRecord[]>;
  /** A new exec, or news of one; safe when it returns. */
  saveExec(record: ExecRecord): void;
  openLog(sandbox: SandboxId, exec: ExecId): Promise<ExecLog>;
  audit(line: AuditLine): void;
  egressLog(id: SandboxId): EgressLog;
}

/** Makes the clones that sandboxes work on. */
export interface CloneMaker {
  /** Rejects where no clone could be made; makes nothing. */
  check(wish: { readonly repository: string; readonly branch: string }): Promise<void>;
  make(wish: {
    /** The root of a work tree on the host. */
    readonly repository: string;
    readonly branch: string;
    readonly signal: AbortSignal;
  }): Promise<PreparedClone>;
}

/** A fresh repository in a folder of ours, until it is inside. */
export interface PreparedClone {
  readonly folder: string;
  readonly notes: readonly { readonly code: string; readonly message: string }[];
  remove(): Promise<void>;
}

/** The decisions of the gate about one sandbox, on disk, bounded. */
export interface EgressLog {
  append(line: EgressLineView): void;
  /** What is kept, oldest first. */
  read(): Promise<readonly EgressLineView[]>;
}

/** What the gate needs of a sandbox. */
export interface GateClient {
  readonly id: SandboxId;
  readonly name: string;
  /** As it is now: the spec's, with what was changed since. */
  readonly egress: () => EgressSpec;
  /** Names that were given an address inside, in the order in which they got it. */
  readonly names: { load(): readonly string[]; save(names: readonly string[]): void };
  readonly log: EgressLog;
  readonly tell: (draft: EgressEventDraft) => void;
  readonly report: (what: string, error: unknown) => void;
}

type WithoutSandbox<T> = T extends unknown ? Omit<T, 'sandbox_id'> : never;
export type EgressEventDraft = WithoutSandbox<
  Extract<EventDraft, { type: 'egress.allowed' | 'egress.denied' | 'sandbox.note' | 'sandbox.progress' }>
>;

/** The gate as one sandbox has it. */
export interface BoxGate {
  /** For every connection to porter. Resolves when programs inside can ask. */
  connected(porter: Porter): Promise<void>;
  /**
   * Asks as a program inside would for something that nothing allows, and for something that is allowed; rejects with
   * `isolation_missing` unless the one is denied and the other answered.
   */
  probe(porter: Porter): Promise<void>;
  /** The same, and whether the upstream, the hosts of the rules and the secrets can be used now. */
  preflight(porter: Porter): Promise<readonly VerifyCheck[]>;
  /**
   * At each start of the box: puts what programs need to trust the gate into a folder inside, and returns the variables that
   * name it, with the phantoms of the secrets. Waits until its way out is there.
   */
  prepare(porter: Porter, folder: string, signal?: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /** The rules are others now; resolves, when they hold for every connection, with how many open ones that closed. */
  changed(): Promise<number>;
  view(): NetView;
  /** What is in the log, then, if asked, what comes. */
  follow(options: { readonly follow: boolean; readonly signal: AbortSignal }): AsyncIterable<EgressLineView>;
  /** The box ended, or is left alone. */
  close(): void;
  /** The sandbox is removed: nothing of it is anybody's any more. */
  forget(): void;
}

export interface Gate {
  /** Before anything is made: rejects what cannot be served, such as a secret that is not there. */
  check(egress: EgressSpec): void;
  open(client: GateClient): BoxGate;
}

export interface ImageFacts {
  readonly id: string;
  readonly tags: readonly string[];
  readonly digests: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly sizeBytes: number;
  readonly architecture: string;
  readonly env: Readonly<Record<string, string>>;
}

/** What a list says of an image. */
export type ListedImage = Pick<ImageFacts, 'id' | 'tags' | 'digests' | 'labels' | 'sizeBytes'>;

/** What is at a path of an image; `other` is a link, a device, a pipe. */
export interface ImagePath {
  readonly kind: 'file' | 'directory' | 'other';
  /** Permissions and the sticky bit. */
  readonly mode: number;
  readonly sizeBytes: number;
}

/** A copy of an image that is changed from outside; nothing of it ever runs. */
export interface ImageDraft {
  /** Of the path itself, not of what a link leads to. Undefined: there is nothing. */
  stat(path: string): Promise<ImagePath | undefined>;
  read(path: string): Promise<Buffer>;
  /** Unpacks a tar stream over it. What is of another kind than in the stream is replaced. */
  write(archive: Readable): Promise<void>;
  /** Makes a tagged image of it, with the configuration of the image that it is a copy of. */
  commit(repository: string, tag: string): Promise<void>;
  /** Idempotent, and needed in every case. */
  discard(): Promise<void>;
}

/** What image making needs of an engine. */
export interface ImageEngine {
  /** As Debian names it: amd64, arm64. */
  architecture(signal?: AbortSignal): Promise<string>;
  find(reference: string, signal?: AbortSignal): Promise<ImageFacts | undefined>;
  pull(
    reference: string,
    options: {
      readonly progress: Progress;
      readonly signal?: AbortSignal;
      /** What the registry wants to see, as the engine takes it. */
      readonly credentials?: string;
    },
  ): Promise<void>;
  /** An image of one layer from a tar stream of a root file system; untagged, so that a failed producer can be undone. */
  import(
    rootfs: Readable,
    options: {
      readonly changes: readonly string[];
      readonly progress: Progress;
      readonly signal?: AbortSignal;
    },
  ): Promise<string>;
  build(
    context: Readable,
    request: {
      readonly dockerfile: string;
      readonly buildArgs: Readonly<Record<string, string>>;
      readonly labels: Readonly<Record<string, string>>;
      /** `none`: the build gets no network at all. `host`: that of the engine's machine. Else the engine's default. */
      readonly networkMode?: 'none' | 'host';
      /** Nothing of an earlier build is used. */
      readonly noCache?: boolean;
    },
    options: { readonly progress: Progress; readonly signal?: AbortSignal },
  ): Promise<string>;
  /** `name` is had by one draft at a time, among all processes: whoever comes second waits. */
  openDraft(request: {
    readonly image: string;
    readonly name: string;
    /** Of the image that comes of it. */
    readonly kind: OwnedKind;
    readonly labels: Readonly<Record<string, string>>;
  }): Promise<ImageDraft>;
  /**
   * Runs `argv` of the box's image as its first process, hardened as a box and without porter, and returns what it wrote to
   * stdout. The container is gone afterwards; `engine_timeout` if it took longer.
   */
  tryOut(
    box: BoxRequest,
    argv: readonly string[],
    options: { readonly timeoutMs: number; readonly signal?: AbortSignal },
  ): Promise<string>;
  /** All images of ours, or those of this kind. Whoever builds on one of them inherits its labels. */
  listOwned(kind?: OwnedKind): Promise<readonly ListedImage[]>;
  tag(image: string, repository: string, tag: string): Promise<void>;
  remove(reference: string): Promise<void>;
}
