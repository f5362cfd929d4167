/** What a sandbox works with: handed in once, by whoever constructs. */

import type { ProgressEvent } from '../lib/progress.ts';
import type { ServiceEngine } from './ports/services.ts';
import type { BoxEngine, BoxImages, CloneMaker, Gate, SandboxStore } from './ports.ts';

export interface SandboxWorld {
  readonly engine: BoxEngine;
  readonly services: ServiceEngine;
  readonly images: BoxImages;
  readonly store: SandboxStore;
  readonly gate: Gate;
  readonly clones: CloneMaker;
  /** Whose sandboxes these are: see `lib/owner.ts`. */
  readonly owner: string;
  readonly now: () => string;
  /** Passed at every step between two changes of the world. Tests end the process there. */
  readonly checkpoint: (name: string) => void;
  /** The user's SSH agent, where there is one, and whose it must be. */
  readonly sshAgent: { readonly path: string | undefined; readonly uid: number };
  /** How long a foreground command and an ephemeral sandbox outlive their client, who may come back. */
  readonly clientAbsenceMs: number;
  /** How long a sandbox may take to end a command whose time is over, before it is stopped itself. */
  readonly overduePatienceMs: number;
  /** What the user should know once, before the first sandbox with a live workspace. */
  readonly firstLiveNote: () => Promise<{ readonly code: string; readonly message: string } | undefined>;
  /** For what nobody waits for and nobody can be told. */
  readonly report: (what: string, error: unknown) => void;
}

export type Tell = (event: ProgressEvent) => void;
