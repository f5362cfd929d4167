/**
 * `sally diff`: what changed in a copied workspace, against what was copied in.
 *
 * SECURITY: names and contents come from inside. Into a pipe a patch goes byte by byte; a terminal gets nothing that it obeys.
 */

import { quoted } from '../../lib/git-patch.ts';
import { Turns } from '../../lib/turns.ts';
import { isGitPath } from '../../policy/protected-names.ts';
import { diffChanges, type FileDiff } from '../../sdk/diff-changes.ts';
import type { ChangeSide, WorkspaceChange } from '../../sdk/workspace-changes.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { pump } from '../foreground.ts';
import { colours } from '../harmless.ts';
import { note, print, printJson } from '../output.ts';
import { onlyBelow, openResults } from '../result-box.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { printable, table } from '../table.ts';

export interface DiffOptions {
  readonly stat?: true;
  readonly nameOnly?: true;
  readonly exitCode?: true;
  readonly json?: true;
}

export async function diffCommand(
  box: string | undefined,
  paths: readonly string[],
  options: DiffOptions,
  { signal }: CliContext,
): Promise<number> {
  const sandboxes = new SandboxCalls();
  try {
    const { calls } = await openResults(sandboxes, box, signal);
    const found = onlyBelow(await calls.list({ signal }), paths);
    const { changes } = found;
    if (options.json === true) printJson({ ...found, changes: changes.map(changeJson) });
    else if (options.nameOnly === true) for (const change of changes) print(nameLine(change));
    else {
      const diffs = diffChanges(calls, found, { signal });
      if (options.stat === true) await printStat(diffs);
      else if (process.stdout.isTTY) await printShown(diffs, signal);
      else await pump(patchBytes(diffs), process.stdout);
      sayHidden(changes);
    }
    return options.exitCode === true && changes.length > 0 ? exitCode.failed : exitCode.ok;
  } finally {
    sandboxes.close();
  }
}

async function* patchBytes(diffs: AsyncIterable<FileDiff>): AsyncGenerator<Buffer> {
  for await (const { bytes, change, isWhole } of diffs) {
    if (!isWhole) sayTooLarge(change);
    yield bytes;
  }
}

export function sayTooLarge({ path, after }: WorkspaceChange): void {
  if (after?.compared === false) {
    note(`${printable(path)} is too large to compare (${after.size} bytes); \`sally cp\` copies it out`);
    return;
  }
  note(`${printable(path)} is too large for a patch; \`sally apply\` or \`sally cp\` brings it back`);
}

function sayHidden(changes: readonly WorkspaceChange[]): void {
  const count = changes.filter(({ pathBytes }) => isGitPath(pathBytes)).length;
  if (count > 0) note(`not shown: ${count} changes below .git; --name-only has their names`);
}

const letters = { added: 'A', changed: 'M', removed: 'D' } as const;
const nameLine = ({ pathBytes, change, before, after }: WorkspaceChange): string => {
  const isFolder = (after ?? before)?.kind === 'directory';
  return `${letters[change]}\t${quoted('', pathBytes)}${isFolder ? '/' : ''}`;
};

async function printStat(diffs: AsyncIterable<FileDiff>): Promise<void> {
  const rows: (readonly string[])[] = [];
  let [added, removed] = [0, 0];
  for await (const diff of diffs) {
    const lines = diff.isBinary ? 'binary' : `+${diff.added} -${diff.removed}`;
    if (!diff.isWhole) sayTooLarge(diff.change);
    rows.push([quoted('', diff.change.pathBytes), diff.change.change, lines]);
    added += diff.added;
    removed += diff.removed;
  }
  if (rows.length === 0) return;
  for (const row of table(['PATH', 'CHANGE', 'LINES'], rows)) print(row);
  print(`${rows.length} file${rows.length === 1 ? '' : 's'}, +${added} -${removed}`);
}

async function printShown(diffs: AsyncIterable<FileDiff>, signal: AbortSignal): Promise<void> {
  const turns = new Turns();
  for await (const { bytes, isBinary, isWhole, change } of diffs) {
    const text = isBinary ? binaryHead(bytes) : bytes.toString('utf8');
    for (const line of text.replace(/\n$/, '').split('\n')) {
      print(coloured(shown(line)));
      await turns.take();
      signal.throwIfAborted();
    }
    if (!isWhole) sayTooLarge(change);
    else if (isBinary) print(`Binary file ${quoted('', change.pathBytes)} differs`);
  }
}

/** The lines before the content. */
function binaryHead(bytes: Buffer): string {
  return bytes.toString('latin1').replace(/^(GIT binary patch|Binary files )[\s\S]*$/m, '');
}

/** Tabs are what they are; everything else that a terminal obeys is shown as its code. */
const shown = (line: string): string => line.split('\t').map(printable).join('\t');

function coloured(line: string): string {
  if (/^(diff --git |index |--- |\+\+\+ |(new|deleted) file mode |(old|new) mode )/.test(line))
    return colours.bold(line);
  if (line.startsWith('@@')) return colours.cyan(line);
  if (line.startsWith('+')) return colours.green(line);
  return line.startsWith('-') ? colours.red(line) : line;
}

/** As the API has it. */
export function changeJson({
  path,
  pathBytes,
  change,
  before,
  after,
}: WorkspaceChange): Record<string, unknown> {
  return {
    path,
    ...exact('path', path, pathBytes),
    change,
    ...(before === undefined ? {} : { before: sideJson(before) }),
    ...(after === undefined ? {} : { after: sideJson(after) }),
  };
}

function sideJson({ linkTarget, ...side }: ChangeSide): Record<string, unknown> {
  if (linkTarget === undefined) return side;
  const text = linkTarget.toString('utf8');
  return { ...side, link_target: text, ...exact('link_target', text, linkTarget) };
}

const exact = (key: string, text: string, bytes: Buffer): Record<string, string> =>
  Buffer.from(text).equals(bytes) ? {} : { [`${key}_base64`]: bytes.toString('base64') };
