/**
 * The daemon's Tor client: one process for all sandboxes that leave by Tor, started when the first of them needs it, started again
 * when it died, stopped when none needs it any more. Nothing here resolves a name.
 */

import { randomBytes } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { deadline } from '../../lib/deadline.ts';
import { deferred } from '../../lib/deferred.ts';
import { SallyportError } from '../../protocol/errors.ts';
import type { BootstrapPhase } from './tor-control.ts';
import { TorProcess } from './tor-process.ts';

export interface TorParts {
  /** Its own. */
  readonly folder: string;
  /** Where the program is looked for, in this order. */
  readonly programFolders: readonly string[];
  readonly userSettings?: string | undefined;
  /** It stays so long after the last sandbox, as the next one may come soon. */
  readonly lingerMs?: number;
}

export interface TorUser {
  readonly sandbox: string;
  readonly progress: (phase: BootstrapPhase) => void;
  /** It died, and is started again by the next who needs it. */
  readonly ended: (error: SallyportError) => void;
}

export interface TorPlace {
  readonly path: string;
  readonly login: { readonly user: string; readonly password: string };
}

export interface TorLease {
  /** When circuits can be built; `tor_not_ready` if that takes longer. */
  socks(withinMs: number, signal?: AbortSignal): Promise<TorPlace>;
  /** Idempotent. */
  release(): void;
}

const usualLingerMs = 60_000;
/** One that ended as it started does so again: whoever asks so soon gets the same answer. */
const failedMs = 3000;

export class TorClient {
  readonly #parts: TorParts;
  readonly #users = new Set<TorUser>();
  #process: TorProcess | undefined;
  #failed: { readonly error: SallyportError; readonly atMs: number } | undefined;
  #linger: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(parts: TorParts) {
    this.#parts = parts;
  }

  /** Throws `tor_missing`. */
  requireProgram(): string {
    for (const folder of this.#parts.programFolders) {
      const path = join(folder, 'tor');
      if (isExecutable(path)) return path;
    }
    throw new SallyportError('tor_missing', 'egress.upstream is tor, and this machine has no program tor', {
      details: { field: 'egress.upstream', looked_in: [...this.#parts.programFolders] },
    });
  }

  lease(user: TorUser): TorLease {
    clearTimeout(this.#linger);
    this.#users.add(user);
    const login = { user: user.sandbox, password: randomBytes(16).toString('hex') };
    return {
      socks: async (withinMs, signal) => {
        const limit = deadline(withinMs, signal);
        try {
          return { path: await this.#ready(limit.signal), login };
        } finally {
          limit.dispose();
        }
      },
      release: () => {
        if (!this.#users.delete(user) || this.#users.size > 0) return;
        this.#linger = setTimeout(() => void this.#stop(), this.#parts.lingerMs ?? usualLingerMs).unref();
      },
    };
  }

  /** For good. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#linger);
    await this.#stop();
  }

  async #stop(): Promise<void> {
    await this.#process?.stop();
  }

  async #ready(signal: AbortSignal): Promise<string> {
    const tor = this.#running();
    const late = deferred<never>();
    late.promise.catch(() => {});
    const giveUp = (): void => late.reject(this.#late(tor));
    if (signal.aborted) giveUp();
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      await Promise.race([tor.ready, late.promise]);
      return tor.socksPath;
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  #running(): TorProcess {
    if (this.#process !== undefined) return this.#process;
    if (this.#isClosed) throw new SallyportError('tor_failed', 'the daemon stops, and Tor with it');
    if (this.#failed !== undefined && performance.now() - this.#failed.atMs < failedMs) {
      throw this.#failed.error;
    }
    const { folder, userSettings } = this.#parts;
    const tor = new TorProcess({ program: this.requireProgram(), folder, userSettings }, (phase) => {
      for (const user of this.#users) user.progress(phase);
    });
    this.#process = tor;
    void tor.ended.then((error) => this.#onEnd(tor, error));
    return tor;
  }

  #onEnd(tor: TorProcess, error: SallyportError): void {
    this.#process = undefined;
    if (tor.phase.percent < 100) this.#failed = { error, atMs: performance.now() };
    for (const user of this.#users) user.ended(error);
  }

  #late({ phase }: TorProcess): SallyportError {
    const { percent, summary } = phase;
    return new SallyportError('tor_not_ready', `Tor is at ${percent} % (${summary})`, {
      details: { percent, summary },
    });
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
