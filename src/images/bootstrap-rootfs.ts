/**
 * Makes an image from the distribution's packages: mmdebstrap's tar goes straight into the engine, without a copy.
 *
 * The end of the stream is held back until mmdebstrap has said that it succeeded, so the engine never finishes an image
 * of half a root file system. Whatever happens, the child is gone and its folder removed when this returns.
 */

import { chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import type { Progress } from '../lib/progress.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import { label, ownedLabels } from '../protocol/labels.ts';
import type { ImageEngine } from '../sandboxes/ports.ts';
import { type ProgramEnd, type RunningProgram, saysDiskFull, startProgram } from './child-program.ts';
import { requireRoom } from './free-space.ts';
import { bootstrapProgress, mmdebstrapArguments, programIsThere } from './mmdebstrap.ts';
import type { Recipe } from './recipe.ts';

export interface BootstrapOptions {
  readonly engine: ImageEngine;
  readonly progress: Progress;
  readonly signal?: AbortSignal | undefined;
  /** Where the root file system grows before it is packed (default: the system's). */
  readonly tempDir?: string | undefined;
}

/** Returns the id of an untagged image; whoever asked for it removes it if it comes to nothing. */
export async function bootstrapRootfs(recipe: Recipe, options: BootstrapOptions): Promise<string> {
  const { engine, progress, signal } = options;
  if (isAborted(signal)) throw cancelled();
  const folder = await mkdtemp(join(options.tempDir ?? tmpdir(), 'sallyport-bootstrap-'));
  try {
    // Without root, mmdebstrap works as another user id of ours, who must be able to pass.
    await chmod(folder, 0o755);
    const program = await startMmdebstrap(recipe, folder, options);
    const labels = ownedLabels('image-bootstrap', { [label.inputs]: recipe.inputs });
    try {
      const rootfs = Readable.from(untilProven(program, signal), { objectMode: false });
      // The signal ends the producer, not this call: an engine that has the whole stream finishes the image anyway, and
      // only its answer tells the id to remove.
      const id = await engine.import(rootfs, {
        changes: Object.entries(labels).map(([name, value]) => `LABEL ${name}=${value}`),
        progress,
      });
      if (!isAborted(signal)) return id;
      await engine.remove(id);
      throw cancelled();
    } catch (error) {
      if (isAborted(signal)) throw cancelled(error);
      // On a full disk apt 3 reports only that it could not fetch an index. The folder itself may be removed already.
      if (isSallyportError(error, 'image_build_failed')) await requireRoom(recipe.kind, [dirname(folder)]);
      throw error;
    } finally {
      await program.stop();
    }
  } finally {
    await removeFolder(folder);
  }
}

/**
 * Removes the folder even if this process is killed: mmdebstrap then dies of its broken output before it has cleaned up.
 * A trap, unlike an ignored signal, is not inherited, so mmdebstrap still hears that it should stop.
 */
const thenRemoveFolder =
  'trap : HUP INT TERM PIPE; "$@"; code=$?; rm -rf --one-file-system -- "$TMPDIR"; exit $code';

async function startMmdebstrap(
  recipe: Recipe,
  folder: string,
  { progress, signal }: BootstrapOptions,
): Promise<RunningProgram> {
  // As root it mounts /proc, /sys and /dev into the folder. In a mount namespace of its own not even a killed one can
  // leave them behind, where removing the folder would reach into the host's.
  const alone = await programIsThere('unshare', ['--mount', 'true']);
  const command = ['mmdebstrap', ...mmdebstrapArguments(recipe)];
  return startProgram(
    'sh',
    ['-c', thenRemoveFolder, 'sh', ...(alone ? ['unshare', '--mount'] : []), ...command],
    {
      environment: { TMPDIR: folder, LC_ALL: 'C.UTF-8' },
      onLine: bootstrapProgress(progress),
      signal,
      stdoutIsData: true,
      // As a terminal's Ctrl-C would: its workers die, and it cleans up after them.
      stop: { signal: 'SIGTERM', to: 'group' },
    },
  );
}

async function* untilProven(
  program: RunningProgram,
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer> {
  let broken: unknown;
  try {
    yield* program.stdout as AsyncIterable<Buffer>;
  } catch (error) {
    broken = error;
  }
  const end = await program.ended;
  if (isAborted(signal)) throw cancelled(broken);
  if (end.exitCode !== 0 || broken !== undefined) throw failure(end, broken);
}

function failure(end: ProgramEnd, cause: unknown): SallyportError {
  const details = { output: end.lastLines };
  if (saysDiskFull(end.lastLines)) {
    return new SallyportError('disk_full', 'no space left while making the image from packages', {
      details,
      cause,
    });
  }
  const complaints = end.lastLines.filter((line) => /^E:|error|fail/i.test(line));
  const tail = (complaints.length > 0 ? complaints : end.lastLines).slice(-3).join(' · ');
  return new SallyportError(
    'image_build_failed',
    `mmdebstrap failed (exit ${end.exitCode ?? 'by signal'}): ${tail}`,
    {
      details,
      cause,
      advice: 'Check that this machine reaches the package mirrors (`apt-get update`), then try again.',
    },
  );
}

/** A call, so that the compiler does not take what was true before an await for true after it. */
function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

function cancelled(cause?: unknown): SallyportError {
  return new SallyportError('cancelled', 'making the image was cancelled', { cause });
}

/** `rm` rather than Node's own, because it can be told never to cross into another file system. */
async function removeFolder(folder: string): Promise<void> {
  const program = startProgram('rm', ['-rf', '--one-file-system', '--', folder], {
    onLine: () => {},
    stop: { signal: 'SIGTERM', to: 'group' },
  });
  await program.ended;
}
