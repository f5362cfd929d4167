/**
 * `sally apply`: brings the changes of a copied workspace back to this machine, as this user: onto the folder that was
 * copied, onto another one, as a patch, or as a branch. `sdk/apply-changes.ts` and `git-branch.ts` do the writing.
 */

import { gitEnvironment } from '../../agents/git/config.ts';
import { blobHash } from '../../lib/git-patch.ts';
import { Turns } from '../../lib/turns.ts';
import { isProtectedPath } from '../../policy/protected-names.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { type ApplyResult, applyChanges } from '../../sdk/apply-changes.ts';
import { diffChanges, isInPatch } from '../../sdk/diff-changes.ts';
import { gitDirectoryParts } from '../../sdk/git-directories.ts';
import { HostFolder } from '../../sdk/host-folder.ts';
import type {
  ChangeCalls,
  ChangeSide,
  WorkspaceChange,
  WorkspaceChanges,
} from '../../sdk/workspace-changes.ts';
import { writeHostFile } from '../../sdk/write-file.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { pump } from '../foreground.ts';
import { type BranchEntry, type MadeBranch, makeBranch } from '../git-branch.ts';
import { absolutePath } from '../options/spec-from-options.ts';
import { note, print, printJson, shownContent } from '../output.ts';
import { openResults, type ResultBox } from '../result-box.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { printable, table } from '../table.ts';
import { changeJson, sayTooLarge } from './diff.ts';

export interface ApplyCommandOptions {
  readonly patch?: string;
  readonly to?: string;
  readonly asBranch?: string;
  readonly dryRun?: true;
  readonly force?: true;
  readonly skipConflicts?: true;
  readonly includeProtected?: readonly string[];
  readonly keepLinks?: true;
  readonly json?: true;
}

export async function applyCommand(
  box: string | undefined,
  options: ApplyCommandOptions,
  { signal, finish }: CliContext,
): Promise<number> {
  requireOneWay(options);
  const sandboxes = new SandboxCalls();
  try {
    const opened = await openResults(sandboxes, box, signal);
    if (options.patch !== undefined) return await asPatch(opened, options.patch, options, signal);
    if (options.asBranch !== undefined) return await asBranch(opened, options.asBranch, options, signal);
    return await ontoFolder(opened, options, { signal, finish });
  } finally {
    sandboxes.close();
  }
}

function requireOneWay(options: ApplyCommandOptions): void {
  const { patch, to, asBranch, force, skipConflicts, dryRun } = options;
  const ways = [patch, to, asBranch].filter((way) => way !== undefined).length;
  const refuse = (message: string, advice: string): SallyportError =>
    new SallyportError('usage', message, { advice });
  if (ways > 1) throw refuse('--patch, --to and --as-branch are different ways', 'Choose one of them.');
  if (force === true && skipConflicts === true)
    throw refuse('--force and --skip-conflicts contradict each other', 'Choose one of them.');
  const isToFolder = patch === undefined && asBranch === undefined;
  if (!isToFolder && (force ?? skipConflicts ?? dryRun) === true)
    throw refuse('--force, --skip-conflicts and --dry-run are about a folder', 'Leave them out here.');
}

async function ontoFolder(
  { name, calls }: ResultBox,
  options: ApplyCommandOptions,
  { signal, finish }: Pick<CliContext, 'signal' | 'finish'>,
): Promise<number> {
  const { to, json, patch: _patch, asBranch: _branch, ...rules } = options;
  const target = to === undefined ? {} : { to: absolutePath(to, process.cwd()) };
  const result = await applyChanges(calls, { ...rules, ...target, signal, onWriting: finish });
  // A Ctrl-C that came with the daemon's last answer counts.
  await new Turns().listen();
  if (json === true) printJson(resultJson(result));
  else printResult(name, result, rules.dryRun === true);
  if (signal.aborted) {
    note(
      result.applied && result.written.length > 0
        ? 'the first of them was written when it was interrupted, so it was done to the end'
        : 'it was interrupted; nothing was written',
    );
    return exitCode.interrupted;
  }
  const isBlocked = result.conflicts.length > 0;
  return isBlocked ? exitCode.failed : exitCode.ok;
}

const letters = { added: 'A', changed: 'M', removed: 'D' } as const;

function printResult(name: string, result: ApplyResult, isDry: boolean): void {
  const { folder, applied, written, conflicts, leftOut, same } = result;
  if (applied || isDry)
    for (const { change, path } of written) print(`${letters[change]}\t${printable(path)}`);
  for (const { path, why } of leftOut) note(`left out ${printable(path)}: ${printable(why)}`);
  if (leftOut.some(({ isProtected }) => isProtected))
    note('look at them with `sally diff`, and name what you want with --include-protected PATH');
  if (conflicts.length > 0) {
    const rows = conflicts.map(({ path, host, inside, isHard }) => [
      path,
      host,
      inside,
      isHard ? 'no' : 'yes',
    ]);
    for (const row of table(['CONFLICT', 'HERE', 'IN THE SANDBOX', '--force'], rows)) note(row);
    if (!applied)
      note(
        `${isDry ? 'would write' : 'wrote'} nothing: --skip-conflicts writes the rest, --force overwrites, ` +
          `--patch FILE and --as-branch NAME leave ${printable(folder)} alone`,
      );
  }
  if (applied) note(`${written.length} changes of ${name} brought to ${printable(folder)}`);
  if (same.length > 0) note(`${same.length} were there already`);
}

function resultJson({ written, same, leftOut, conflicts, ...rest }: ApplyResult): Record<string, unknown> {
  return {
    ...rest,
    written: written.map(changeJson),
    same: same.map(changeJson),
    left_out: leftOut.map(({ path, why, isProtected }) => ({ path, why, protected: isProtected })),
    conflicts: conflicts.map(({ path, host, inside, isHard }) => ({ path, host, inside, hard: isHard })),
  };
}

/** Without what the host executes unasked, unless it is named. */
async function withoutProtected(
  found: WorkspaceChanges,
  { includeProtected = [] }: ApplyCommandOptions,
): Promise<WorkspaceChanges> {
  const host = HostFolder.open(found.source);
  const isOfGit = await gitDirectoryParts(host, found.changes).finally(() => host.close());
  const isLeft = ({ path, pathBytes }: WorkspaceChange): boolean =>
    (isProtectedPath(pathBytes) || isOfGit(pathBytes)) &&
    !includeProtected.some((one) => path === one || path.startsWith(`${one}/`));
  for (const change of found.changes) if (change.after?.compared === false) sayTooLarge(change);
  for (const { path } of found.changes.filter(isLeft))
    note(`left out ${printable(path)}: this machine may execute it unasked`);
  const isIn = (change: WorkspaceChange): boolean => !isLeft(change) && change.after?.compared !== false;
  return { ...found, changes: found.changes.filter(isIn) };
}

async function asPatch(
  { calls }: ResultBox,
  file: string,
  options: ApplyCommandOptions,
  signal: AbortSignal,
): Promise<number> {
  const found = await withoutProtected(await calls.list({ signal }), options);
  let count = 0;
  async function* patch(): AsyncGenerator<Buffer> {
    for await (const { bytes, change, isWhole } of diffChanges(calls, found, { signal })) {
      if (!isWhole) sayTooLarge(change);
      count++;
      yield bytes;
    }
  }
  if (file === '-') await pump(shownContent(patch()), process.stdout);
  else await writeHostFile(absolutePath(file, process.cwd()), patch(), 0o644);
  if (options.json === true && file !== '-') printJson({ patch: file, files: count });
  else note(`${count} changes in ${file === '-' ? 'the patch' : file}; the folder was not touched`);
  return exitCode.ok;
}

async function asBranch(
  { name, calls }: ResultBox,
  branch: string,
  options: ApplyCommandOptions,
  signal: AbortSignal,
): Promise<number> {
  const found = await withoutProtected(await calls.list({ signal }), options);
  const entries = found.changes
    .filter(isInPatch)
    .map((change) => entryOf(calls, found.target, change, signal));
  if (entries.length === 0) {
    note(`nothing changed in ${name} that a commit could hold; no branch was made`);
    return exitCode.ok;
  }
  const message = `Changes of sandbox ${name}\n`;
  const made = await makeBranch(found.source, gitEnvironment(), { branch, message, entries, signal });
  if (options.json === true) printJson(branchJson(made));
  else printBranch(made, found.source);
  return exitCode.ok;
}

function entryOf(
  calls: ChangeCalls,
  target: string,
  change: WorkspaceChange,
  signal: AbortSignal,
): BranchEntry {
  const { pathBytes: path, before, after } = change;
  const now = nowOf(calls, target, change, signal);
  const base = before?.kind === 'file' && before.kept === true;
  return {
    path,
    ...(now === undefined || after === undefined ? {} : { now }),
    ...(base
      ? { baseHash: async (algorithm) => blobHash(await calls.base(path, { signal }), algorithm) }
      : {}),
  };
}

function nowOf(
  calls: ChangeCalls,
  target: string,
  change: WorkspaceChange,
  signal: AbortSignal,
): BranchEntry['now'] | undefined {
  const after: ChangeSide | undefined = change.after;
  if (after?.kind === 'symlink') {
    const { linkTarget = Buffer.alloc(0) } = after;
    return { mode: '120000', sizeBytes: linkTarget.length, content: () => [linkTarget] };
  }
  if (after?.kind !== 'file') return undefined;
  return {
    mode: ((after.mode ?? 0) & 0o100) === 0 ? '100644' : '100755',
    sizeBytes: after.size ?? 0,
    content: () => calls.inside(target, change, { signal }),
  };
}

const shownPath = (path: Buffer): string => printable(path.toString('utf8'));

function branchJson({
  branch,
  commit,
  written,
  leftOut,
  otherThanHead,
}: MadeBranch): Record<string, unknown> {
  return {
    branch,
    commit,
    written: written.map((path) => path.toString('utf8')),
    left_out: leftOut.map(({ path, why }) => ({ path: path.toString('utf8'), why })),
    other_than_head: otherThanHead.map((path) => path.toString('utf8')),
  };
}

function printBranch({ branch, commit, written, leftOut, otherThanHead }: MadeBranch, folder: string): void {
  if (commit !== undefined) print(branch);
  for (const { path, why } of leftOut) note(`left out ${shownPath(path)}: ${why}`);
  for (const path of otherThanHead)
    note(`${shownPath(path)} differed from HEAD before the sandbox changed it; the commit has that as well`);
  note(
    commit === undefined
      ? 'nothing is left that a commit could hold; no branch was made'
      : `${written.length} changes in commit ${commit.slice(0, 10)}; the work tree of ${printable(folder)} was not touched`,
  );
}
