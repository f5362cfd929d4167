/** Gets the image to build on from a registry, without waiting long for a network that is dead. */

import { deadline } from '../lib/deadline.ts';
import type { Progress } from '../lib/progress.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { ImageEngine } from '../sandboxes/ports.ts';
import type { RegistryCredentials } from './registry-credentials.ts';

/** A registry that answers does so within this time; the engine itself would go on trying for minutes. */
const firstSignMs = 20_000;
/** Unpacking a big layer on a slow disk is silent for a while. */
const stalledMs = 180_000;

export interface PullOptions {
  readonly engine: ImageEngine;
  readonly progress: Progress;
  readonly signal?: AbortSignal | undefined;
  readonly credentials?: RegistryCredentials | undefined;
}

export async function pullBase(
  reference: string,
  { engine, progress, signal, credentials: keys }: PullOptions,
): Promise<void> {
  let lastSignAtMs: number | undefined;
  const limit = deadline(
    firstSignMs,
    signal,
    () => lastSignAtMs !== undefined && performance.now() - lastSignAtMs < stalledMs,
  );
  try {
    progress({ step: 'pull', message: `asking for ${reference}` });
    const credentials = await keys?.forImage(reference, progress);
    await engine.pull(reference, {
      signal: limit.signal,
      ...(credentials === undefined ? {} : { credentials }),
      progress: (event) => {
        lastSignAtMs = performance.now();
        progress(event);
      },
    });
  } catch (error) {
    if (limit.expired()) {
      throw new SallyportError('image_pull_failed', `no registry gave ${reference} in time`, {
        cause: error,
      });
    }
    throw error;
  } finally {
    limit.dispose();
  }
}

/** Failures after which another way is worth trying. */
export function isWorthAnotherWay(error: unknown): error is SallyportError {
  return isSallyportError(error) && error.code !== 'cancelled' && error.code !== 'disk_full';
}
