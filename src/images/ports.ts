/** What project images need to remember, declared by the one who needs it. The store implements it. */

import type { ImageInput } from './inputs.ts';

/** The last build of a folder, or the image that was found to fit it. */
export interface BuildRecord {
  /** Links followed. */
  readonly folder: string;
  readonly reference: string;
  readonly imageId: string;
  readonly fingerprint: string;
  readonly inputs: readonly ImageInput[];
  readonly builtAt: string;
  /** Absent where an image that was there already was taken. */
  readonly durationMs?: number;
}

/** What a file was like when its content was read; the same again means the same content. */
export interface CachedDigest {
  /** Device, inode, size, and the times of content and inode in ms. */
  readonly seen: readonly [number, number, number, number, number];
  readonly digest: string;
}

/** When a registry was last asked for a base, by this machine's clock. Dates in images say nothing about that. */
export interface BaseCheck {
  readonly checkedAt: string;
  /** Of the last attempt that failed, if that came later. */
  readonly failedAt?: string;
}

export interface BuildLog {
  write(text: string): void;
  close(): void;
}

export interface ImageRecords {
  builds(): readonly BuildRecord[];
  findBuild(folder: string): BuildRecord | undefined;
  saveBuild(record: BuildRecord): void;
  /** With all else that is kept of this folder. */
  forgetBuild(folder: string): void;
  /** A cache: empty where nothing is kept, or nothing can be read. */
  loadDigests(folder: string): Map<string, CachedDigest>;
  saveDigests(folder: string, digests: ReadonlyMap<string, CachedDigest>): void;
  baseChecks(): Readonly<Record<string, BaseCheck>>;
  saveBaseCheck(reference: string, check: BaseCheck): void;
  /** The output of one build; takes the place of the one before. */
  openLog(folder: string): BuildLog;
  readLog(folder: string): string | undefined;
}

/** One build of a fingerprint at a time, among all processes that use the engine. */
export interface BuildTurns {
  /** Resolves when it is this one's turn, with what gives it back. */
  take(name: string, signal?: AbortSignal): Promise<() => Promise<void>>;
}
