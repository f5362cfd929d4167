/**
 * The guard for programs: a command is judged here, and runs where it belongs. What belongs on the host runs in this very
 * process's user and folder, because a daemon that ran it would lend its rights to every client.
 */

import { randomBytes } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Asked, GuardParts, SandboxedRun, SandboxRunOptions } from '../guard/guard.ts';
import type { GuardedCommand, GuardedInput } from '../guard/guarded-command.ts';
import type { HostRun } from '../guard/host-run.ts';
import type { GuardImage } from '../guard/sandbox-image.ts';
import { isSallyportError, type SallyportError } from '../protocol/errors.ts';
import type { EvaluationView, GuardRecord, GuardResult } from '../protocol/guard.ts';
import { type Approval, Approvals } from './approvals.ts';
import { DaemonClient } from './client.ts';
import { readClientEnvironment } from './config.ts';
import type { ExecOutcome } from './outcome.ts';
import { type Connection, Sandbox, type SandboxSpec } from './sandbox.ts';

export type { GuardResult };
/** A line of shell, a program with its arguments, or a tool of an agent. */
export type GuardCommand = string | readonly string[] | { readonly tool: string; readonly args?: unknown };
export type CommandEvaluation = EvaluationView;

export interface GuardOptions {
  /** Where it runs on the host. Absent: this program's folder. */
  readonly cwd?: string;
  /** 0: none. Default 300 000. */
  readonly timeoutMs?: number;
  /** More of the sandbox that it gets where it is not for the host; strict unless a profile is named. */
  readonly sandbox?: SandboxSpec;
  /** The sandbox gets a copy of the folder that it may change, and is kept for `diff` and `apply`; the result names it. */
  readonly writableCopy?: boolean;
  /** False: what needs a yes is rejected at once. */
  readonly ask?: boolean;
  /** At most 300 000: by then no answer is a no. */
  readonly approvalTimeoutMs?: number;
  /** Whose remembered approvals count. Absent: this program's own. */
  readonly session?: string;
  /** A question waits for somebody who answers it with `sally approve` or `sally deny`. */
  readonly onPending?: (approval: Approval) => void;
  readonly signal?: AbortSignal;
}

const defaultTimeoutMs = 300_000;
const ownSession = `program ${randomBytes(8).toString('hex')}`;

/** Judges a command and runs nothing. It needs no daemon. */
export async function evaluate(
  command: GuardCommand,
  options: Pick<GuardOptions, 'cwd'> = {},
): Promise<CommandEvaluation> {
  const guarded = await readCommand(command);
  const judged = (await judging(options.cwd))(guarded.text);
  return { command: guarded.text, ...judged, reasons: [...judged.reasons] };
}

/** Judges a command and runs it where it belongs. Rejects where something failed that is not the command's. */
export async function guard(
  command: GuardCommand,
  options: GuardOptions = {},
  connection: Connection = {},
): Promise<GuardResult> {
  const { guardCommand } = await import('../guard/guard.ts');
  const client = connection.client ?? new DaemonClient(connection);
  try {
    const guarded = await readCommand(command);
    const parts = await guardParts(client, options, connection);
    return await guardCommand(guarded, options.timeoutMs ?? defaultTimeoutMs, parts);
  } finally {
    if (connection.client === undefined) client.close();
  }
}

/** For the command line: the same parts, some of which it replaces. */
export async function guardParts(
  client: DaemonClient,
  options: GuardOptions,
  connection: Connection = {},
): Promise<GuardParts> {
  const [{ runOnHost, findShell }, { recordRun }, { readGuardEnvironment }, { folderWatch }] =
    await Promise.all([
      import('../guard/host-run.ts'),
      import('../guard/record-run.ts'),
      import('../guard/config.ts'),
      import('../guard/folder-watch.ts'),
    ]);
  const { variables } = readGuardEnvironment();
  const cwd = resolve(options.cwd ?? '.');
  const stateDir = connection.stateDir ?? readClientEnvironment().stateDir;
  const cancel = options.signal === undefined ? {} : { signal: options.signal };
  return {
    judge: await judging(cwd),
    ...(options.ask === false ? {} : { ask: (command) => askSomebody(client, command, cwd, options) }),
    runInSandbox: (command, run) => runInSandbox(client, command, run, { ...options, stateDir }),
    runOnHost: (command, limits) => runOnHost(command, { cwd, environment: variables, ...limits, ...cancel }),
    isSameFolder: folderWatch(cwd),
    hasShell: () => findShell(variables, cwd) !== undefined,
    otherEngine: async () => undefined,
    record: (record) => recordRun(stateDir, record, (words) => postRecord(stateDir, words)),
  };
}

async function readCommand(command: GuardCommand): Promise<GuardedCommand> {
  const { readGuarded } = await import('../guard/guarded-command.ts');
  if (typeof command === 'string') return readGuarded({ command });
  return readGuarded(Array.isArray(command) ? { argv: command } : (command as GuardedInput));
}

async function judging(cwd: string | undefined): Promise<GuardParts['judge']> {
  const [{ judge, readGuardRules }, { readGuardEnvironment }] = await Promise.all([
    import('../guard/judge.ts'),
    import('../guard/config.ts'),
  ]);
  const rules = await readGuardRules(readGuardEnvironment());
  return (text) => judge(text, rules, resolve(cwd ?? '.'));
}

async function askSomebody(
  client: DaemonClient,
  { text }: GuardedCommand,
  cwd: string,
  { signal, onPending, session, approvalTimeoutMs }: GuardOptions,
): Promise<Asked> {
  const { id, state, by } = await new Approvals({ client }).ask(
    {
      command: text,
      cwd,
      session: session ?? ownSession,
      ...(approvalTimeoutMs === undefined ? {} : { expiresInMs: approvalTimeoutMs }),
    },
    {
      ...(signal === undefined ? {} : { signal }),
      ...(onPending === undefined ? {} : { pending: onPending }),
    },
  );
  return {
    approved: state === 'approved',
    id,
    how: state === 'expired' ? 'not answered in time' : `${state} by ${by ?? 'nobody'}`,
  };
}

async function runInSandbox(
  client: DaemonClient,
  command: GuardedCommand,
  { timeoutMs, reason, made: onMade }: SandboxRunOptions,
  { sandbox = {}, signal, cwd, writableCopy = false, stateDir }: GuardOptions & { readonly stateDir: string },
): Promise<SandboxedRun> {
  const cancel = signal === undefined ? {} : { signal };
  const { readGuardImage } = await import('../guard/sandbox-image.ts');
  const guardImage = await readGuardImage();
  const { made, note, dispose } = await inFolder(
    sandbox,
    { cwd: resolve(cwd ?? '.'), writableCopy, stateDir, guardImage },
    (more) => Sandbox.create({ ...sandbox, ...more, ephemeral: !writableCopy, ...cancel }, { client }),
  );
  onMade();
  try {
    const run = (argv: readonly string[]) => made.exec(argv, { timeoutMs, reason, ...cancel });
    const kept = writableCopy ? { sandbox: made.info.name } : {};
    return {
      ...(await ranInside(command, run)),
      engine: made.info.isolation.engine,
      ...noted(note),
      ...kept,
    };
  } finally {
    // What it changed in a copy is what nobody wanted on the host, unless it was asked for. Where the engine went away the
    // daemon removes it when it is back; how the command ended is what counts here.
    if (!writableCopy) await made.remove({ force: true }).catch(() => {});
    await dispose();
  }
}

export const noted = (note: string | undefined): { readonly note?: string } =>
  note === undefined ? {} : { note };

const insidePath = '/workspace';

/** What the guard adds to a spec: engine, image, profile, and the folder. */
export interface AddedSpec {
  readonly profile: 'standard' | 'strict';
  readonly engine?: 'bubblewrap';
  readonly image?: string;
  readonly images?: { readonly default: string; readonly strict: string };
  readonly workspace?: { readonly path: string; readonly mode: 'copy' };
  readonly workdir?: string;
  readonly mounts?: ReadonlyArray<{ readonly source: string; readonly target: string }>;
}

interface Made<T> {
  readonly made: T;
  readonly note?: string | undefined;
  /** To be called when the sandbox is gone. */
  readonly dispose: () => Promise<void>;
}

/**
 * Makes the sandbox with the working folder in it, read-only by the rules for mounts. A folder that these rules refuse is left
 * out, and whoever reads the result is told.
 */
export async function inFolder<T>(
  spec: GuardedSpec,
  {
    cwd: given,
    writableCopy,
    stateDir,
    guardImage,
  }: {
    readonly cwd: string;
    readonly writableCopy: boolean;
    readonly stateDir: string;
    /** For a spec that chooses no image. */
    readonly guardImage?: GuardImage | undefined;
  },
  make: (more: AddedSpec) => Promise<T>,
): Promise<Made<T>> {
  // As a mount it may have no link on the way.
  const cwd = await realpath(given).catch(() => given);
  const dispose = async (): Promise<void> => {};
  const made = async (more: Partial<AddedSpec>, notes: readonly (string | undefined)[] = []) => {
    const { made: result, note } = await inStrictest(
      { ...spec, ...(more.workspace === undefined ? {} : { workspace: more.workspace }) },
      (profile) =>
        onSomeEngine(spec.engine, (engine) =>
          withImage(spec, guardImage, (image) => make({ ...more, ...engine, ...image, profile })),
        ),
    );
    const all = [...notes, note, result.note, result.made.note].filter((each) => each !== undefined);
    return { made: result.made.made, note: all.length === 0 ? undefined : all.join('; ') };
  };
  if (writableCopy) return { ...(await made({ workspace: { path: cwd, mode: 'copy' } })), dispose };
  if (spec.workspace !== undefined) return { ...(await made({})), dispose };
  const { readableFolder } = await import('../guard/readable-folder.ts');
  const folder = await readableFolder(cwd, stateDir);
  const { path } = folder;
  if (path === undefined) return { ...(await made({}, [folder.note])), dispose };
  // As a mount, because a workspace would have the project's own files decide about the image. SECURITY: the mount beside a
  // copy has the folder itself judged by the same rules; nobody may not read it.
  const mounts = [
    ...(spec.mounts ?? []),
    { source: path, target: insidePath },
    ...(folder.isCopy ? [{ source: cwd, target: '/mnt/folder' }] : []),
  ];
  try {
    // Also where it is on the host: commands name files by their whole paths.
    const both = [...mounts, { source: path, target: cwd }];
    const result = await made({ workdir: insidePath, mounts: both }, [folder.note]).catch(
      async (error: unknown) => {
        if (!isAboutTarget(error, both.length - 1)) throw error;
        return await made({ workdir: insidePath, mounts }, [folder.note]);
      },
    );
    return { ...result, dispose: folder.remove };
  } catch (error) {
    await folder.remove();
    if (!isSallyportError(error, 'refused_by_policy')) throw error;
    return { ...(await made({}, [`it did not have this folder: ${error.message}`])), dispose };
  }
}

/** A sandbox has something of its own there, such as /workspace. */
const isAboutTarget = (error: unknown, index: number): boolean =>
  isSallyportError(error, 'refused_by_policy') && error.details['field'] === `mounts.${index}.target`;

/** Where no container engine is and bubblewrap is, it is used: less isolation than a container, and far more than none. */
async function onSomeEngine<T>(
  named: string | undefined,
  make: (engine: Pick<AddedSpec, 'engine'>) => Promise<T>,
): Promise<{ readonly made: T; readonly note?: string }> {
  try {
    return { made: await make({}) };
  } catch (error) {
    if ((named !== undefined && named !== 'auto') || !isSallyportError(error, 'engine_not_chosen'))
      throw error;
    const { weaker = [] } = error.details as { readonly weaker?: readonly string[] };
    const made = await make({ engine: 'bubblewrap' });
    return {
      made,
      note: `no container engine answers; bubblewrap ran it, which isolates less: ${weaker.join('; ')}`,
    };
  }
}

/**
 * `guard.image` is named as `--image` names one. Other settings are only defaults, so a Dockerfile of the workspace takes precedence.
 * An engine without images runs the command in its own system, and the note says so.
 */
async function withImage<T>(
  { image: named, agent, images }: GuardedSpec,
  chosen: GuardImage | undefined,
  make: (image: Pick<AddedSpec, 'image' | 'images'>) => Promise<T>,
): Promise<{ readonly made: T; readonly note?: string }> {
  const isChosen = named !== undefined || agent !== undefined || images !== undefined;
  if (chosen === undefined || isChosen) return { made: await make({}) };
  const { field, image } = chosen;
  if (field !== 'guard.image') return { made: await make({ images: { default: image, strict: image } }) };
  try {
    return { made: await make({ image }) };
  } catch (error) {
    if (!isSallyportError(error, 'engine_unsupported') || error.details['field'] !== 'image') throw error;
    return { made: await make({}), note: `it did not have guard.image (${image}): ${error.message}` };
  }
}

interface GuardedSpec {
  readonly image?: string | undefined;
  readonly agent?: string | undefined;
  readonly images?: object | undefined;
  readonly profile?: 'standard' | 'strict' | undefined;
  readonly workspace?: { readonly mode?: string | undefined } | undefined;
  readonly egress?: object | undefined;
  readonly engine?: string | undefined;
  readonly mounts?: ReadonlyArray<{ readonly source: string; readonly target: string }> | undefined;
}

/**
 * The strict profile, unless another one is named, or something is asked for that the strict one never gives. Where the engine
 * cannot hold it the other one is still a sandbox, and better than none; whoever reads the result is told.
 */
async function inStrictest<T>(
  { profile, workspace, egress }: GuardedSpec,
  make: (profile: 'standard' | 'strict') => Promise<T>,
): Promise<{ readonly made: T; readonly note?: string }> {
  if (profile !== undefined) return { made: await make(profile) };
  const needsMore = egress !== undefined || (workspace !== undefined && workspace.mode !== 'readonly');
  if (needsMore) return { made: await make('standard') };
  try {
    return { made: await make('strict') };
  } catch (error) {
    if (!isSallyportError(error, 'engine_unsupported') || error.details['field'] !== 'profile') throw error;
    return { made: await make('standard'), note: `it had the standard profile: ${error.message}` };
  }
}

/** A program that is not there is the command's own failure, as it is on the host. */
export async function ranInside(
  { argv, text }: GuardedCommand,
  run: (argv: readonly string[]) => Promise<ExecOutcome>,
): Promise<HostRun> {
  try {
    const outcome = argv === undefined ? await inShell(text, run) : await run(argv);
    const { stdout, stderr, exitCode, signal, timedOut, durationMs } = outcome;
    const { signalNumber } = await import('../lib/signals.ts');
    const code = exitCode ?? 128 + (signal === undefined ? 0 : (signalNumber(signal) ?? 0));
    return { stdout, stderr, exitCode: code, timedOut, durationMs };
  } catch (error) {
    if (!isSallyportError(error, 'exec_start_failed')) throw error;
    return notStarted(error);
  }
}

const ENOENT = 2;

/** The shell whose language was judged, as on the host; another one where the image does not have it. */
async function inShell(
  text: string,
  run: (argv: readonly string[]) => Promise<ExecOutcome>,
): Promise<ExecOutcome> {
  try {
    return await run(['bash', '-c', text]);
  } catch (error) {
    if (!isSallyportError(error, 'exec_start_failed') || error.details['errno'] !== ENOENT) throw error;
    return await run(['sh', '-c', text]);
  }
}

function notStarted(error: SallyportError): HostRun {
  return {
    stdout: '',
    stderr: `${error.message}\n`,
    exitCode: error.details['errno'] === ENOENT ? 127 : 126,
    timedOut: false,
    durationMs: 0,
  };
}

/** False: no daemon runs, and none is started for a line in a log. */
async function postRecord(stateDir: string, record: GuardRecord): Promise<boolean> {
  const client = new DaemonClient({ stateDir, startDaemon: false, anyEngine: true });
  try {
    await client.json('POST', '/v1/guard/records', { body: record });
    return true;
  } catch (error) {
    const isGone = ['daemon_unreachable', 'daemon_gone', 'daemon_stopping'] as const;
    if (isGone.some((code) => isSallyportError(error, code))) return false;
    throw error;
  } finally {
    client.close();
  }
}
