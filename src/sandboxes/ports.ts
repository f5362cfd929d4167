/** What sandboxes need of the world, declared by the one who needs it. Engines implement it; nothing here knows Docker. */

import type { Duplex, Readable } from 'node:stream';
import type { Progress } from '../lib/progress.ts';
import type { BoxRequest } from '../protocol/box.ts';

export interface BoxState {
  readonly running: boolean;
  readonly exitCode: number;
  readonly oomKilled: boolean;
}

/** The stream to a sandbox's first process. It always reads; the porter protocol bounds what may be under way. */
export interface BoxDoor extends Duplex {
  /** The last of what the first process wrote to stderr. */
  readonly stderrTail: string;
}

export interface BoxEngine {
  /** Makes the volume that delivers porter, or verifies the one that is there; returns its name. */
  providePorter(fillerImage: string, signal?: AbortSignal): Promise<string>;
  /**
   * Removes containers of this owner, and helpers of nobody's, that were created longer than `olderThanMs` ago and never
   * started: their maker was killed in between. Returns how many.
   */
  sweep(owner: string, olderThanMs: number): Promise<number>;
  create(box: BoxRequest, signal?: AbortSignal): Promise<string>;
  attach(id: string, signal?: AbortSignal): Promise<BoxDoor>;
  /** Another way in, to a box that runs: attaching a second time loses and mixes up bytes. */
  openRelay(id: string, signal?: AbortSignal): Promise<BoxDoor>;
  start(id: string, signal?: AbortSignal): Promise<void>;
  state(id: string): Promise<BoxState>;
  /** Idempotent; runs to its end whatever the caller does (A13). */
  remove(id: string): Promise<void>;
}

export interface ImageFacts {
  readonly id: string;
  readonly tags: readonly string[];
  readonly digests: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly sizeBytes: number;
  readonly architecture: string;
}

/** What image making needs of an engine. */
export interface ImageEngine {
  /** As Debian names it: amd64, arm64. */
  architecture(signal?: AbortSignal): Promise<string>;
  find(reference: string, signal?: AbortSignal): Promise<ImageFacts | undefined>;
  pull(
    reference: string,
    options: { readonly progress: Progress; readonly signal?: AbortSignal },
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
      /** `none`: the build gets no network at all. Else the engine's default. */
      readonly networkMode?: 'none';
    },
    options: { readonly progress: Progress; readonly signal?: AbortSignal },
  ): Promise<string>;
  tag(image: string, repository: string, tag: string): Promise<void>;
  remove(reference: string): Promise<void>;
}
