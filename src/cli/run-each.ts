/**
 * `--each`: one command for every line of a file, each in a sandbox and on a branch of its own. A clone's commits are brought back
 * and its sandbox goes, unless something in it is not committed; a worktree stays as the result. It is the same when it is cancelled.
 */

import { readFileSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { basename } from 'node:path';
import {
  commandOf,
  fanOut,
  readTasks,
  type Task,
  type TaskHelp,
  type TaskResult,
  taskBranch,
} from '../agents/fan-out.ts';
import { gitEnvironment } from '../agents/git/config.ts';
import { changesSince, provideWorktree } from '../agents/git/worktree.ts';
import { agentBoxName } from '../policy/agent-name.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { SpecInput } from '../protocol/spec.ts';
import type { SandboxView } from '../protocol/views.ts';
import { Sandbox } from '../sdk/sandbox.ts';
import type { CliContext } from './context.ts';
import { exitCode } from './exit-codes.ts';
import { type FanOutView, fanOutJson, fanOutView } from './fan-out-table.ts';
import { loadSpec } from './load-spec.ts';
import { makeSandbox } from './make-sandbox.ts';
import type { BoxOptions } from './options/box-options.ts';
import { absolutePath, specFlags } from './options/spec-from-options.ts';
import { printJson } from './output.ts';
import { SandboxCalls } from './sandbox-calls.ts';

export interface EachOptions extends BoxOptions {
  readonly each?: string;
  readonly jobs?: number;
  readonly json?: true;
  readonly timeout?: number;
  readonly detach?: true;
  readonly tty?: true;
  readonly interactive?: true;
}

const usualJobs = 2;

export async function runEach(
  command: readonly string[],
  options: EachOptions,
  context: CliContext,
): Promise<number> {
  const cwd = process.cwd();
  const { each: _each, branch: prefix, worktree: _worktree, ...box } = options;
  if (prefix === undefined)
    throw usage('--each works on branches', 'Add `--branch PREFIX`, with or without `--worktree`.');
  const { tasks, repository } = await eachOf(options, cwd);
  const flags = specFlags({ ...box, workspace: repository }, cwd);
  const spec = await loadSpec(flags, { cwd, approve: options.approve === true }, context);
  const calls = new SandboxCalls();
  try {
    const who = basename(command[0] ?? 'run');
    const each: EachWork = {
      calls,
      repository,
      prefix,
      options,
      specOf: (branch) => ({ ...spec, name: agentBoxName({ agent: who, branch, workspace: repository }) }),
      execOf: async (task) => ({ argv: commandOf(command, task) }),
    };
    return await workOnEach(tasks, each, context);
  } finally {
    calls.close();
  }
}

/** The tasks, and the repository that they are about. */
export async function eachOf(
  options: EachOptions,
  cwd: string,
): Promise<{ readonly tasks: readonly Task[]; readonly repository: string }> {
  const { each = '', workspace } = options;
  if ((options.detach ?? options.tty ?? options.interactive) === true)
    throw usage('--each has no input and no terminal, and waits for the end', 'Leave -d, -i and -t out.');
  if (options.name !== undefined || options.workspaceMode !== undefined)
    throw usage(
      '--each names its sandboxes itself, and each has a clone or a worktree',
      'Leave --name and --workspace-mode out.',
    );
  const tasks = readTasks(readTaskFile(absolutePath(each, cwd), each), each);
  const given = typeof workspace === 'string' ? absolutePath(workspace, cwd) : cwd;
  return { tasks, repository: await realpath(given) };
}

export async function workOnEach(
  tasks: readonly Task[],
  each: EachWork,
  context: CliContext,
): Promise<number> {
  const view = fanOutView();
  const states = await fanOut(tasks, {
    jobs: each.options.jobs ?? usualJobs,
    runOne: (task, help) => runTask(task, { ...help, aside: view.aside }, each, context),
    onChange: view.changed,
    now: () => performance.now(),
    signal: context.signal,
  });
  view.done(states);
  if (each.options.json === true) printJson(fanOutJson(states));
  if (context.signal.aborted) return exitCode.interrupted;
  return states.every(({ state }) => state === 'done') ? exitCode.ok : exitCode.failed;
}

const usage = (message: string, advice: string): SallyportError =>
  new SallyportError('usage', message, { advice });

function readTaskFile(path: string, shown: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new SallyportError('usage', `--each ${shown} cannot be read: ${reason}`, {
      advice: 'Name a file with one task a line.',
      cause: error,
    });
  }
}

export interface EachWork {
  readonly calls: SandboxCalls;
  readonly repository: string;
  /** Of the branches. */
  readonly prefix: string;
  readonly options: EachOptions;
  /** Its workspace is filled in. */
  readonly specOf: (branch: string) => SpecInput & { readonly name: string };
  /** What is run for a task, once its sandbox is there. */
  readonly execOf: (
    task: Task,
    box: SandboxView,
  ) => Promise<{ readonly argv: readonly string[]; readonly envs?: Readonly<Record<string, string>> }>;
}

async function runTask(
  task: Task,
  { signal, say, aside }: TaskHelp & Pick<FanOutView, 'aside'>,
  each: EachWork,
  context: CliContext,
): Promise<TaskResult> {
  const { calls, options } = each;
  const branch = taskBranch(each.prefix, task);
  const spec = each.specOf(branch);
  const { name } = spec;
  say(`making ${name}`);
  const { workspace, before } = await workspaceOf(spec, each, branch, signal);
  const endOf = async (): Promise<End> =>
    before === undefined ? await endOfClone(box) : await endOfWorktree(workspace.path, branch, before);
  const made = await makeSandbox(calls, { spec: { ...spec, workspace } }, context, {
    approve: options.approve === true,
    quiet: true,
  });
  const box = await Sandbox.connect(made.id, { client: calls.client });
  let end: End | undefined;
  try {
    say(`running in ${name}`);
    const limit = options.timeout === undefined ? {} : { timeoutMs: options.timeout };
    const { argv, envs = {} } = await each.execOf(task, made);
    const ended = await box.exec(argv, { signal, envs, ...limit });
    const bytes = ended.totalBytes.stdout + ended.totalBytes.stderr + (await networkBytes(box));
    const code = ended.timedOut ? exitCode.timeout : (ended.exitCode ?? exitCode.sallyportFailed);
    end = await endOf();
    return { exitCode: code, changes: end.changes, bytes, where: end.where };
  } finally {
    if (signal.aborted && end === undefined) say(halfDone(await endOf().catch(() => undefined)));
    if (end?.keep !== true) await removeUnlessChanged(calls, made, aside);
  }
}

/** Of one that was ended in the middle. */
function halfDone(end: End | undefined): string {
  if (end === undefined) return 'ended in the middle';
  const { changes, where } = end;
  return `ended in the middle, ${changes === 0 ? 'nothing changed' : `${changes} changed: ${where}`}`;
}

/** After a failure something may be in it that exists nowhere else. */
async function removeUnlessChanged(
  calls: SandboxCalls,
  { id, name }: SandboxView,
  aside: (text: string) => void,
): Promise<void> {
  try {
    await calls.remove(id, {});
  } catch (error) {
    if (!isSallyportError(error, 'sandbox_changed')) throw error;
    aside(`${name} stays, because it has what exists nowhere else → sally diff ${name}`);
  }
}

async function workspaceOf(
  spec: SpecInput,
  { repository, options }: EachWork,
  branch: string,
  signal: AbortSignal,
) {
  const rest = spec.workspace ?? { path: repository };
  if (options.worktree !== true)
    return { workspace: { ...rest, path: repository, mode: 'clone' as const, branch } };
  const environment = gitEnvironment();
  const { folder, commit } = await provideWorktree({ repository, branch, environment, signal });
  return { workspace: { ...rest, path: folder }, before: commit };
}

interface End {
  readonly changes: number;
  readonly where: string;
  /** The sandbox has what exists nowhere else. */
  readonly keep: boolean;
}

async function endOfClone(box: Sandbox): Promise<End> {
  const { commits, references, uncommitted, leftOut } = await box.bringCommits().catch((error: unknown) => {
    if (isSallyportError(error, 'commits_refused') || isSallyportError(error, 'git_failed'))
      return refusedBundle;
    throw error;
  });
  const keep = uncommitted.length + leftOut.length > 0;
  const ref = references[0]?.ref;
  const where = keep ? `in ${box.name} → sally diff ${box.name}` : (ref ?? '');
  return { changes: commits + uncommitted.length, where, keep };
}

/** Then everything is kept where it is. */
const refusedBundle = {
  commits: 0,
  references: [],
  uncommitted: [],
  leftOut: [{ branch: '', why: 'refused' }],
} as const;

async function endOfWorktree(folder: string, branch: string, before: string): Promise<End> {
  const changes = await changesSince({ folder, environment: gitEnvironment() }, before);
  return { changes, where: `${folder} (${branch})`, keep: false };
}

/** Of what the gate let through, in both directions. */
async function networkBytes(box: Sandbox): Promise<number> {
  if (box.info.egress === undefined) return 0;
  let bytes = 0;
  for await (const { bytesIn, bytesOut } of box.net.log()) bytes += bytesIn + bytesOut;
  return bytes;
}
