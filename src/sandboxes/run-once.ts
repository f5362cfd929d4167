/**
 * One command in a sandbox of its own that is gone afterwards: create, attach, start, greet, exec, remove.
 *
 * Whatever happens, the box is removed: on the way out here, and by the engine itself when this process dies, because
 * porter ends with its host and the box is made to be removed when it ends.
 */

import { randomBytes } from 'node:crypto';
import { type BoxWish, hardenedBox } from '../policy/hardening.ts';
import type { Exec, ExecRequest, ExecResult } from '../porter/exec.ts';
import type { OutputSink } from '../porter/output-sink.ts';
import { Porter } from '../porter/porter.ts';
import type { BoxRequest } from '../protocol/box.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import { label, ownedLabels } from '../protocol/labels.ts';
import type { BoxDoor, BoxEngine } from './ports.ts';

export interface RunOnceRequest
  extends Pick<BoxWish, 'memoryBytes' | 'cpus' | 'pids' | 'runtime' | 'profile'> {
  readonly image: string;
  readonly owner: string;
  readonly exec: Omit<ExecRequest, 'cwd'>;
}

export interface RunTimings {
  readonly createMs: number;
  readonly startMs: number;
  readonly execMs: number;
  readonly removeMs: number;
}

const helloTimeoutMs = 20_000;
/** Longer than any create takes to be followed by its start, also on a busy engine. */
const staleAfterMs = 120_000;

export interface RunStreams {
  readonly sink: OutputSink;
  /** Called with the program once it runs, to feed its input; what it returns is called when the program is over. */
  readonly feed: (exec: Exec) => () => void;
}

export async function runOnce(
  engine: BoxEngine,
  request: RunOnceRequest,
  streams: RunStreams,
  signal?: AbortSignal,
): Promise<{ readonly result: ExecResult; readonly timings: RunTimings }> {
  const marks = [performance.now()];
  const mark = (): void => void marks.push(performance.now());
  // Refused before anything is made.
  runBox(request, '');
  await engine.sweep(request.owner, staleAfterMs);
  const porterVolume = await engine.providePorter(request.image, signal);
  const box = runBox(request, porterVolume);
  // Not cancelled half-way: a create whose answer is not awaited would leave a box that nobody knows.
  const id = await engine.create(box);
  let result: ExecResult;
  try {
    signal?.throwIfAborted();
    mark();
    const door = await engine.attach(id, signal);
    try {
      await engine.start(id, signal);
      const porter = await greet(door, signal);
      mark();
      result = await execute(porter, request, streams, signal);
      mark();
      porter.close();
    } catch (error) {
      throw await explain(engine, id, door, error);
    }
  } finally {
    await engine.remove(id);
    mark();
  }
  const [t0 = 0, t1 = 0, t2 = 0, t3 = 0, t4 = 0] = marks;
  return { result, timings: { createMs: t1 - t0, startMs: t2 - t1, execMs: t3 - t2, removeMs: t4 - t3 } };
}

/** The box that a run would get; pure but for its name. */
export function runBox(request: RunOnceRequest, porterVolume: string): BoxRequest {
  const { image, owner, exec: _exec, ...wish } = request;
  return hardenedBox({
    ...wish,
    image,
    porterVolume,
    name: `sallyport-run-${randomBytes(6).toString('hex')}`,
    endsWithHost: true,
    labels: ownedLabels('sandbox', { [label.owner]: owner }),
  });
}

async function greet(door: BoxDoor, signal: AbortSignal | undefined): Promise<Porter> {
  return await Porter.open(door, {
    epoch: 1,
    token: randomBytes(32),
    timeoutMs: helloTimeoutMs,
    ...(signal === undefined ? {} : { signal }),
  });
}

async function execute(
  porter: Porter,
  request: RunOnceRequest,
  streams: RunStreams,
  signal: AbortSignal | undefined,
): Promise<ExecResult> {
  const exec = porter.exec({ ...request.exec, cwd: '/tmp' }, streams.sink);
  const onAbort = (): void => porter.close();
  signal?.addEventListener('abort', onAbort, { once: true });
  let stopFeeding = (): void => {};
  try {
    await exec.started;
    stopFeeding = streams.feed(exec);
    return await exec.result;
  } catch (error) {
    if (signal?.aborted === true) {
      throw new SallyportError('cancelled', 'the command was cancelled', { cause: error });
    }
    throw error;
  } finally {
    stopFeeding();
    signal?.removeEventListener('abort', onAbort);
  }
}

/** A lost connection says little; what the box and porter's last words tell says more. */
async function explain(engine: BoxEngine, id: string, door: BoxDoor, error: unknown): Promise<unknown> {
  if (!isSallyportError(error, 'porter_gone')) return error;
  const state = await engine.state(id).catch(() => undefined);
  const words = door.stderrTail.trim();
  const memory = state?.oomKilled === true ? ' (it ran out of memory)' : '';
  const reason = words === '' ? error.message : `${error.message}: ${words}`;
  return new SallyportError('porter_gone', `${reason}${memory}`, { cause: error });
}
