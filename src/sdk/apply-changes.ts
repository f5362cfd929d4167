/**
 * Brings the changes of a copied workspace to a folder of this machine, as this user. Nothing is written before everything
 * was decided and everything that will be written is here; from then on it is renames. What a crash cuts off is finished
 * by doing it again, because what is done is found as done.
 *
 * Calls to the file system block, as in `host-folder.ts`, and others get their turn between paths.
 *
 * SECURITY: names, links, modes and contents are hostile. `host-folder.ts` reaches every path; modes get no set-id bits.
 */

import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  openSync,
  read,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs';
import { realpath } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Piece } from '../lib/content-hash.ts';
import { type DataBounds, SparseWriter } from '../lib/sparse-writer.ts';
import { Turns } from '../lib/turns.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import { type ApplyRules, type Conflict, type LeftOut, planApply, type Step } from './apply-plan.ts';
import { HostFolder, isUnchanged, nameOf } from './host-folder.ts';
import { StagingFolder, stagingName } from './staging-folder.ts';
import type { BroughtBackPath, ChangeCalls, WorkspaceChange } from './workspace-changes.ts';

export interface ApplyOptions extends ApplyRules {
  /** Another folder than the one that was copied. */
  readonly to?: string;
  /** Decide everything and write nothing. */
  readonly dryRun?: boolean;
  /** Until the first path is written: then nothing is. After that it is done to the end. */
  readonly signal?: AbortSignal;
  /** Called right before the first path is written. */
  readonly onWriting?: () => void;
}

export interface ApplyResult {
  /** Where the changes went, or would have gone. */
  readonly folder: string;
  /** False if there were conflicts, and for a dry run: nothing was written. */
  readonly applied: boolean;
  readonly written: readonly WorkspaceChange[];
  /** There already as they are inside. */
  readonly same: readonly WorkspaceChange[];
  readonly leftOut: readonly LeftOut[];
  readonly conflicts: readonly Conflict[];
}

export async function applyChanges(calls: ChangeCalls, options: ApplyOptions = {}): Promise<ApplyResult> {
  const cancel = options.signal === undefined ? {} : { signal: options.signal };
  const { source, target, changes } = await calls.list(cancel);
  const folder = HostFolder.open(options.to ?? source);
  try {
    const plan = await planApply(folder, changes, options);
    const mayWrite = plan.conflicts.length === 0 || options.skipConflicts === true;
    const applied = mayWrite && options.dryRun !== true;
    if (applied) {
      await written(folder, plan.steps, (files) => calls.contents(target, files, cancel), options);
      const isSource = options.to === undefined || (await realpath(options.to)) === source;
      if (isSource)
        await calls.broughtBack(broughtBackPaths([...plan.steps.map(({ change }) => change), ...plan.same]));
    }
    const { same, leftOut, conflicts } = plan;
    return {
      folder: folder.path,
      applied,
      written: plan.steps.map(({ change }) => change),
      same,
      leftOut,
      conflicts,
    };
  } finally {
    folder.close();
  }
}

/** What waits to be renamed into place. */
interface Staged {
  readonly staging: StagingFolder;
  /** Where the file of a step has data. */
  readonly data: ReadonlyMap<Step, DataBounds>;
}

type Fetch = (changes: readonly WorkspaceChange[]) => ReturnType<ChangeCalls['contents']>;

async function written(
  folder: HostFolder,
  steps: readonly Step[],
  fetch: Fetch,
  { signal, onWriting = () => {} }: Pick<ApplyOptions, 'signal' | 'onWriting'>,
): Promise<void> {
  if (steps.length === 0) return;
  let staging: StagingFolder | undefined;
  try {
    StagingFolder.removeAbandoned(folder.root);
    staging = StagingFolder.make(folder.root);
    const data = await stage(staging, steps, fetch, signal);
    await putAllInPlace(folder, steps, { staging, data }, () => {
      requireWanted(signal);
      onWriting();
    });
  } catch (error) {
    throw isSallyportError(error) ? error : writeFailure(folder, error);
  } finally {
    staging?.remove();
  }
}

async function putAllInPlace(
  folder: HostFolder,
  steps: readonly Step[],
  { staging, data }: Staged,
  begin: () => void,
): Promise<void> {
  const turns = new Turns();
  folder.forget();
  await requireAllUnchanged(folder, steps, turns);
  folder.forget();
  // All may have come and been looked at without a pause: a Ctrl-C of that time is heard now, or it would be too late for it.
  await turns.listen();
  begin();
  // From here on it is not cancelled: half of it would be worse than all of it.
  for (const step of steps.filter(isRemoval).reverse()) {
    removeOne(folder, step);
    await turns.take();
  }
  // Those that were removed may be reached no more.
  folder.forget();
  for (const step of steps.filter(isFolder)) folder.provideParent(below(step.change.pathBytes));
  for (const [index, step] of steps.entries()) {
    await putInPlace(folder, step, { at: staging.at(index), data: data.get(step) ?? [] });
    await turns.take();
  }
}

const below = (path: Buffer): Buffer => Buffer.concat([path, Buffer.from('/x')]);

function writeFailure({ path }: HostFolder, cause: unknown): SallyportError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new SallyportError('apply_failed', `changes could not be written to ${path}: ${reason}`, {
    details: { path },
    cause,
  });
}

/** Everything that will be renamed into place, by the number of its step. */
async function stage(
  staging: StagingFolder,
  steps: readonly Step[],
  fetch: Fetch,
  signal: AbortSignal | undefined,
): Promise<Staged['data']> {
  const data = new Map<Step, DataBounds>();
  const files = new Map<WorkspaceChange, { readonly at: Buffer; readonly step: Step }>();
  for (const [index, step] of steps.entries()) {
    const { after } = step.change;
    const at = staging.at(index);
    if (after?.kind === 'symlink') symlinkSync(after.linkTarget ?? '', at);
    else if (after?.kind === 'file') files.set(step.change, { at, step });
  }
  try {
    for await (const { change, chunks } of fetch([...files.keys()])) {
      const file = files.get(change);
      if (file !== undefined) data.set(file.step, await stageFile(file.at, file.step, chunks));
    }
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  }
  requireWanted(signal);
  return data;
}

function requireWanted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true)
    throw new SallyportError('cancelled', 'it was cancelled, and nothing was written');
}

const readAsync = promisify(read);
const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;

/** Where it has data. */
async function stageFile(
  at: Buffer,
  { change, host }: Step,
  chunks: AsyncIterable<Piece> | Iterable<Piece>,
): Promise<DataBounds> {
  const isRunnable = ((change.after?.mode ?? 0) & 0o100) !== 0;
  const fd = openSync(at, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, isRunnable ? 0o755 : 0o644);
  try {
    const writer = new SparseWriter(fd);
    for await (const chunk of chunks) await writer.write(chunk);
    writer.end();
    if (host.kind !== 'file') return writer.data;
    // What is replaced keeps its owner and its mode, but for the right to run it.
    if (process.getuid?.() === 0) fchownSync(fd, host.uid, host.gid);
    fchmodSync(fd, isRunnable ? host.mode | ((host.mode & 0o444) >> 2) : host.mode & ~0o111);
    return writer.data;
  } finally {
    closeSync(fd);
  }
}

const isFolder = ({ change }: Step): boolean => change.after?.kind === 'directory';

/** Also what must make room: a rename replaces files and links, but no folder, and no file makes room for one. */
const isRemoval = (step: Step): boolean =>
  step.host.kind !== 'absent' &&
  (step.change.after === undefined || isFolder(step) || step.host.kind === 'directory');

function removeOne(folder: HostFolder, { change, host }: Step): void {
  const at = folder.provideParent(change.pathBytes).child(nameOf(change.pathBytes));
  requireUnchanged(at, { change, host });
  if (host.kind !== 'directory') {
    unlinkSync(at);
    return;
  }
  try {
    rmdirSync(at);
  } catch (error) {
    // A folder that is gone inside stays here with what is only here.
    if (codeOf(error) !== 'ENOTEMPTY' || change.after !== undefined) throw error;
  }
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

interface StagedFile {
  readonly at: Buffer;
  readonly data: DataBounds;
}

async function putInPlace(folder: HostFolder, step: Step, staged: StagedFile): Promise<void> {
  const { change, host } = step;
  if (change.after === undefined || isFolder(step)) return;
  const parent = folder.provideParent(change.pathBytes);
  const at = parent.child(nameOf(change.pathBytes));
  const expected: Step = { change, host: isRemoval(step) ? { kind: 'absent' } : host };
  requireUnchanged(at, expected);
  try {
    renameSync(staged.at, at);
    return;
  } catch (error) {
    if (codeOf(error) !== 'EXDEV' || change.after?.kind !== 'file') throw error;
  }
  // A folder of another file system is mounted here.
  const beside = parent.child(stagingName());
  try {
    await copyFile(staged, beside);
    requireUnchanged(at, expected);
    renameSync(beside, at);
  } catch (error) {
    quietlyUnlink(beside);
    throw error;
  }
}

/** A copy that is not whole: what keeps it from being removed is not why it failed. */
function quietlyUnlink(path: Buffer): void {
  try {
    unlinkSync(path);
  } catch {
    // It was not made, or is gone.
  }
}

const copiedAtOnce = 1024 * 1024;

/** With its mode, owner and holes, which cost no time. No link is followed, neither at the one nor at the other. */
async function copyFile({ at, data }: StagedFile, to: Buffer): Promise<void> {
  const source = openSync(at, O_RDONLY | O_NOFOLLOW);
  try {
    const { mode, uid, gid, size } = fstatSync(source);
    const copy = openSync(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      const writer = new SparseWriter(copy);
      let done = 0;
      for (let index = 0; index < data.length; index += 2) {
        const [from = 0, until = 0] = data.slice(index, index + 2);
        await writer.write({ holeBytes: from - done });
        for await (const chunk of readRange(source, from, until)) await writer.write(chunk);
        done = until;
      }
      await writer.write({ holeBytes: size - done });
      writer.end();
      if (process.getuid?.() === 0) fchownSync(copy, uid, gid);
      fchmodSync(copy, mode & 0o777);
    } finally {
      closeSync(copy);
    }
  } finally {
    closeSync(source);
  }
}

async function* readRange(fd: number, from: number, until: number): AsyncGenerator<Buffer> {
  const chunk = Buffer.allocUnsafe(Math.min(copiedAtOnce, until - from));
  for (let at = from; at < until; ) {
    const { bytesRead } = await readAsync(fd, chunk, 0, Math.min(chunk.length, until - at), at);
    if (bytesRead === 0) throw new Error('what was fetched has become shorter');
    yield chunk.subarray(0, bytesRead);
    at += bytesRead;
  }
}

/** Fetching takes its time. Whoever changed something meanwhile finds nothing written, and not half of it. */
async function requireAllUnchanged(folder: HostFolder, steps: readonly Step[], turns: Turns): Promise<void> {
  const cleared = new Set(steps.filter(isFolder).map(({ change }) => change.pathBytes.toString('latin1')));
  for (const { change, host } of steps) {
    const isStill = folder.isStill(change.pathBytes, host, (at) => cleared.has(at.toString('latin1')));
    if (!isStill) throw changedHere(change, 'while it was fetched, and nothing was written');
    await turns.take();
  }
}

function requireUnchanged(at: Buffer, { change, host }: Step): void {
  if (!isUnchanged(at, host)) throw changedHere(change, 'while it was written');
}

const changedHere = ({ path }: WorkspaceChange, when: string): SallyportError =>
  new SallyportError('changed_meanwhile', `${JSON.stringify(path)} changed here ${when}`, {
    details: { path },
  });

/** What the daemon takes for copied in from now on. */
export function broughtBackPaths(changes: readonly WorkspaceChange[]): readonly BroughtBackPath[] {
  return changes.map(({ pathBytes, after }) => {
    const path = { base64: pathBytes.toString('base64') };
    switch (after?.kind) {
      case 'file':
        return {
          kind: 'file',
          path,
          mode: after.mode ?? 0,
          size: after.size ?? 0,
          sha256: after.sha256 ?? '',
        };
      case 'symlink':
        return {
          kind: 'symlink',
          path,
          target: { base64: (after.linkTarget ?? Buffer.alloc(0)).toString('base64') },
        };
      case 'directory':
        return { kind: 'directory', path };
      default:
        return { kind: 'absent', path };
    }
  });
}
