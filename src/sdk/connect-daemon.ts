/**
 * Ensures that a daemon answers: waits for one that is starting, starts one where there is none, replaces one that is older
 * than this package. A newer one is left alone.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { type Progress, silent } from '../lib/progress.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { DaemonPlace } from './daemon-place.ts';
import { NotThere } from './lost-connection.ts';
import { readAll, type Transport } from './transport.ts';

/** How long one that holds the folder may not answer. */
const deadlineMs = 10_000;
/** How long one that was started here may take, on a machine that has much else to do. */
const startMs = 30_000;
const pauseMs = 25;

/**
 * `find` is called before each attempt: another engine's daemon may claim the folder in between. `closed` aborts when nobody
 * waits for the daemon any longer: none is started after that, and one that is starting is ended.
 */
export async function ensureDaemon(
  find: () => DaemonPlace,
  signal?: AbortSignal,
  args: readonly string[] = [],
  progress: Progress = silent,
  closed?: AbortSignal,
): Promise<DaemonPlace> {
  const end = process.uptime() * 1000 + deadlineMs;
  for (;;) {
    signal?.throwIfAborted();
    closed?.throwIfAborted();
    const place = find();
    if (await answers(place.transport)) return place;
    const { folder, childVariables } = place;
    const leftMs = end - process.uptime() * 1000;
    if (leftMs <= 0) {
      throw new SallyportError(
        'daemon_start_failed',
        'another daemon holds the state folder and does not answer',
        { details: { stateDir: folder } },
      );
    }
    try {
      const { startDaemon } = await import('./start-daemon.ts');
      closed?.throwIfAborted();
      const ends = closed === undefined ? {} : { signal: closed };
      await startDaemon({ folder, childVariables, timeoutMs: startMs, args, progress, ...ends });
      return find();
    } catch (error) {
      // Another daemon is about to listen, or about to end.
      if (!isSallyportError(error, 'daemon_running')) throw error;
    }
    await sleep(pauseMs);
  }
}

export async function answers(transport: Transport): Promise<boolean> {
  try {
    await readAll(await transport.send({ method: 'GET', path: '/v1/health' }));
    return true;
  } catch (error) {
    if (error instanceof NotThere || isSallyportError(error, 'daemon_gone')) return false;
    throw error;
  }
}

/** The sandboxes of the old daemon keep running; this package's daemon takes them over. */
export async function replaceDaemon(
  place: DaemonPlace,
  signal?: AbortSignal,
  progress: Progress = silent,
  closed?: AbortSignal,
): Promise<void> {
  const { transport } = place;
  const body = Buffer.from('{"keep":true}');
  const headers = { 'content-type': 'application/json' };
  try {
    await readAll(await transport.send({ method: 'POST', path: '/v1/shutdown', headers, body }));
  } catch (error) {
    if (!(error instanceof NotThere) && !isSallyportError(error, 'daemon_gone')) throw error;
  }
  await untilGone(transport, signal);
  await ensureDaemon(() => place, signal, [], progress, closed);
}

/** A daemon that stops closes its socket before its process ends; the next one waits for its lock. */
export async function untilGone(transport: Transport, signal?: AbortSignal): Promise<void> {
  const end = process.uptime() * 1000 + deadlineMs;
  while (process.uptime() * 1000 < end && (await answers(transport))) {
    signal?.throwIfAborted();
    await sleep(pauseMs);
  }
}
