/**
 * Sees to it that a daemon answers: waits for one that is on its way, starts one where there is none, replaces one that is
 * older than this package. One that is newer, or that has another engine, is left alone.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { type Progress, silent } from '../lib/progress.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { ClientEnvironment } from './config.ts';
import { NotThere } from './lost-connection.ts';
import { readAll, type Transport } from './transport.ts';

const deadlineMs = 10_000;
const pauseMs = 25;

export async function ensureDaemon(
  transport: Transport,
  environment: ClientEnvironment,
  signal?: AbortSignal,
  args: readonly string[] = [],
  progress: Progress = silent,
): Promise<void> {
  const end = process.uptime() * 1000 + deadlineMs;
  for (;;) {
    signal?.throwIfAborted();
    if (await answers(transport)) return;
    const leftMs = end - process.uptime() * 1000;
    if (leftMs <= 0) {
      throw new SallyportError(
        'daemon_start_failed',
        'another daemon holds the state folder and does not answer',
        {
          details: { stateDir: environment.stateDir },
        },
      );
    }
    try {
      const { startDaemon } = await import('./start-daemon.ts');
      await startDaemon({ ...environment, timeoutMs: leftMs, args, progress });
      return;
    } catch (error) {
      // Somebody else's daemon is about to listen, or about to end.
      if (!isSallyportError(error, 'daemon_running')) throw error;
    }
    await sleep(pauseMs);
  }
}

async function answers(transport: Transport): Promise<boolean> {
  try {
    await readAll(await transport.send({ method: 'GET', path: '/v1/health' }));
    return true;
  } catch (error) {
    if (error instanceof NotThere || isSallyportError(error, 'daemon_gone')) return false;
    throw error;
  }
}

/** Its sandboxes go on running; this package's daemon takes them over. */
export async function replaceDaemon(
  transport: Transport,
  environment: ClientEnvironment,
  signal?: AbortSignal,
  progress: Progress = silent,
): Promise<void> {
  const body = Buffer.from('{"keep":true}');
  const headers = { 'content-type': 'application/json' };
  try {
    await readAll(await transport.send({ method: 'POST', path: '/v1/shutdown', headers, body }));
  } catch (error) {
    if (!(error instanceof NotThere) && !isSallyportError(error, 'daemon_gone')) throw error;
  }
  await untilGone(transport, signal);
  await ensureDaemon(transport, environment, signal, [], progress);
}

/** One that stops takes no connections any more before its process ends; the next one waits for its lock. */
export async function untilGone(transport: Transport, signal?: AbortSignal): Promise<void> {
  const end = process.uptime() * 1000 + deadlineMs;
  while (process.uptime() * 1000 < end && (await answers(transport))) {
    signal?.throwIfAborted();
    await sleep(pauseMs);
  }
}
