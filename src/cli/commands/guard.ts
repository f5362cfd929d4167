/** `sally guard`: a command is judged and runs where it belongs; its output and exit code are this process's own. */

import {
  type GuardParts,
  guardCommand,
  type SandboxedRun,
  type SandboxRunOptions,
  why,
} from '../../guard/guard.ts';
import { type GuardedCommand, readGuarded } from '../../guard/guarded-command.ts';
import { readGuardImage } from '../../guard/sandbox-image.ts';
import type { Evaluation } from '../../policy/command-risk/risk.ts';
import { SallyportError } from '../../protocol/errors.ts';
import type { GuardResult } from '../../protocol/guard.ts';
import type { SpecInput } from '../../protocol/spec.ts';
import type { Approval } from '../../sdk/approvals.ts';
import { readClientEnvironment } from '../../sdk/config.ts';
import { guardParts, inFolder, noted, ranInside } from '../../sdk/guard.ts';
import { outcomeOf } from '../../sdk/outcome.ts';
import { askLine } from '../ask.ts';
import { readCliEnvironment } from '../config.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { makeSandbox } from '../make-sandbox.ts';
import type { BoxOptions } from '../options/box-options.ts';
import { specFlags } from '../options/spec-from-options.ts';
import { note, printJson, printOutput } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { shellSession } from '../shell-session.ts';
import { printable } from '../table.ts';
import { answerInPlace } from './approvals.ts';

export interface GuardCommandOptions
  extends Pick<
    BoxOptions,
    'image' | 'workspace' | 'workspaceMode' | 'profile' | 'memory' | 'disk' | 'allow'
  > {
  readonly tool?: string;
  readonly args?: string;
  readonly timeout?: number;
  /** `--no-ask`. */
  readonly ask: boolean;
  readonly approvalTimeout?: number;
  readonly writableCopy?: true;
  readonly json?: true;
}

const defaultTimeoutMs = 300_000;

export async function guardVerb(
  words: readonly string[],
  options: GuardCommandOptions,
  context: CliContext,
): Promise<number> {
  const command = commandOf(words, options);
  const calls = new SandboxCalls();
  try {
    const parts = await partsOf(calls, options, context);
    const result = await guardCommand(command, options.timeout ?? defaultTimeoutMs, parts);
    if (options.json === true) printJson(result);
    else show(result);
    return codeOf(result);
  } finally {
    calls.close();
  }
}

/** One word is a line of shell, as in `sally guard -- 'ls | wc -l'`; several are a program and its arguments. */
function commandOf(words: readonly string[], { tool, args }: GuardCommandOptions): GuardedCommand {
  if (tool !== undefined) {
    if (words.length > 0) throw new SallyportError('usage', 'a command and --tool exclude each other');
    return readGuarded({ tool, ...(args === undefined ? {} : { args: parsed(args) }) });
  }
  if (args !== undefined) throw new SallyportError('usage', '--args belongs to --tool');
  const [first, ...rest] = words;
  if (first === undefined) throw new SallyportError('usage', 'there is no command');
  return readGuarded(rest.length === 0 ? { command: first } : { argv: words });
}

function parsed(args: string): unknown {
  try {
    return JSON.parse(args) as unknown;
  } catch (cause) {
    throw new SallyportError('usage', '--args is no JSON', {
      advice: 'Write it like \'["--fix"]\' or \'{"command":"ls"}\'.',
      cause,
    });
  }
}

async function partsOf(
  calls: SandboxCalls,
  options: GuardCommandOptions,
  context: CliContext,
): Promise<GuardParts> {
  const { signal } = context;
  const isTerminal = process.stdin.isTTY && process.stderr.isTTY;
  // A machine that tests and builds has nobody who answers.
  const mayAsk = options.ask && (isTerminal || !readCliEnvironment().ci);
  const answered = new AbortController();
  const { ask, ...common } = await guardParts(calls.client, {
    ask: mayAsk,
    signal,
    session: shellSession(process.ppid),
    ...(options.approvalTimeout === undefined ? {} : { approvalTimeoutMs: options.approvalTimeout }),
    // At a terminal the question is also asked in place; whoever answers first has answered.
    onPending: (approval) =>
      isTerminal
        ? void answerInPlace(calls.client, approval, AbortSignal.any([signal, answered.signal]))
        : tellPending(approval),
  });
  const spec = specOf(options);
  return {
    ...common,
    ...(ask === undefined
      ? {}
      : {
          ask: (command: GuardedCommand, evaluation: Evaluation) =>
            ask(command, evaluation).finally(() => answered.abort()),
        }),
    runInSandbox: (command, run) =>
      runInSandbox(calls, { spec, writableCopy: options.writableCopy === true }, command, run, context),
    otherEngine: async () => {
      const { bubblewrapHere } = await import('../../setup/here.ts');
      return await bubblewrapHere();
    },
    ...(isTerminal && options.ask
      ? {
          confirmNoIsolation: (command: GuardedCommand, evaluation: Evaluation) =>
            confirmNoIsolation(command, evaluation, signal),
        }
      : {}),
  };
}

/** Flags alone: no file gives a guarded command anything but its image, which `readGuardImage` reads. */
function specOf(options: GuardCommandOptions): SpecInput {
  const { tool: _tool, image, workspace, workspaceMode, profile, memory, disk, allow } = options;
  if (workspaceMode !== undefined && workspace === undefined) {
    throw new SallyportError('usage', '--workspace-mode belongs to --workspace');
  }
  if (options.writableCopy === true && (workspace !== undefined || profile === 'strict')) {
    throw new SallyportError('usage', '--writable-copy excludes --workspace and --profile strict');
  }
  const flags = {
    ...(profile === undefined ? {} : { profile }),
    ...(image === undefined ? {} : { image }),
    // What destroys should find a copy.
    ...(workspace === undefined ? {} : { workspace, workspaceMode: workspaceMode ?? ('copy' as const) }),
    ...(memory === undefined ? {} : { memory }),
    ...(disk === undefined ? {} : { disk }),
    ...(allow === undefined ? {} : { allow }),
  };
  return specFlags(flags, process.cwd()) as SpecInput;
}

function tellPending({ id, expiresAt, command }: Approval): void {
  note(`${id} waits for an answer until ${expiresAt}: ${printable(command)}`);
  note(`elsewhere, run \`sally approve ${id}\` or \`sally deny ${id}\``);
}

async function runInSandbox(
  calls: SandboxCalls,
  { spec, writableCopy }: { readonly spec: SpecInput; readonly writableCopy: boolean },
  command: GuardedCommand,
  { timeoutMs, reason, made: onMade }: SandboxRunOptions,
  context: CliContext,
): Promise<SandboxedRun> {
  const { signal } = context;
  const { stateDir } = readClientEnvironment();
  const { made, note, dispose } = await inFolder(
    spec,
    { cwd: process.cwd(), writableCopy, stateDir, guardImage: await readGuardImage() },
    (more) => {
      const { mounts, ...rest } = more;
      const whole = { ...spec, ...rest, ...(mounts === undefined ? {} : { mounts: [...mounts] }) };
      return makeSandbox(calls, { spec: whole, ephemeral: !writableCopy }, context, { asksEngine: false });
    },
  );
  onMade();
  try {
    const ran = await ranInside(command, async (argv) => {
      const exec = await calls.exec(made.id, { argv: [...argv], timeout_ms: timeoutMs, reason }, { signal });
      return outcomeOf(await calls.wait(made.id, exec.id, { signal }));
    });
    const kept = writableCopy ? { sandbox: made.name } : {};
    return { ...ran, engine: made.isolation.engine, ...noted(note), ...kept };
  } finally {
    // Where that fails the daemon does it later; how the command ended is what counts here.
    if (!writableCopy) await calls.remove(made.id, { force: true, wait: false }).catch(() => {});
    await dispose();
  }
}

async function confirmNoIsolation(
  { text }: GuardedCommand,
  evaluation: Evaluation,
  signal: AbortSignal,
): Promise<boolean> {
  note(printable(text));
  note(`belongs in a sandbox (${why(evaluation)}), and neither Docker nor bubblewrap is there.`);
  note('It can run on this machine WITH NO ISOLATION: as you, with your files, for at most 10 s.');
  const typed = await askLine('Type approve to run it with NO ISOLATION: ', signal);
  return typed === 'approve';
}

function show({ stdout, stderr, status, reason, sandbox }: GuardResult): void {
  printOutput({ stdout, stderr });
  if (sandbox !== undefined)
    note(`run \`sally diff ${sandbox}\` and \`sally apply ${sandbox}\`, then \`sally rm ${sandbox}\``);
  if (status === 'rejected') note(`it did not run: ${printable(reason)}`);
  if (status === 'timeout') note('the command ran out of time and was ended');
}

function codeOf({ status, exitCode: code }: GuardResult): number {
  if (status === 'rejected') return exitCode.notExecutable;
  if (status === 'timeout') return exitCode.timeout;
  return code ?? exitCode.sallyportFailed;
}
