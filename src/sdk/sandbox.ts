/** A sandbox as programs use it. */

import { resolve } from 'node:path';
import { execIdHeader } from '../protocol/client-header.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { CreateInput, ExecInput } from '../protocol/requests.ts';
import type { SpecInput } from '../protocol/spec.ts';
import type {
  ExecResultView,
  ExecView,
  SandboxView,
  StatsView,
  VerifyView,
  WorkspaceScanView,
} from '../protocol/views.ts';
import { type ApplyOptions, type ApplyResult, applyChanges } from './apply-changes.ts';
import { type BringOptions, type BroughtCommits, bringCommits } from './bring-commits.ts';
import { type Camelled, camelled, snaked } from './case.ts';
import { type ConnectionOptions, DaemonClient, segment } from './client.ts';
import { diffChanges, type FileDiff } from './diff-changes.ts';
import { type EventOptions, followEvents, type SandboxEvent } from './events.ts';
import { ExecProcess } from './exec-process.ts';
import { approvedDockerfile } from './images.ts';
import { type Injection, type InjectOptions, injectFiles } from './inject-files.ts';
import { CommandFailedError, type ExecInfo, type ExecOutcome, outcomeOf } from './outcome.ts';
import { SandboxBrowser } from './sandbox-browser.ts';
import { SandboxFiles } from './sandbox-files.ts';
import { SandboxNet } from './sandbox-net.ts';
import { SandboxPorts } from './sandbox-ports.ts';
import { ChangeCalls, type WorkspaceChanges } from './workspace-changes.ts';

export type SandboxInfo = Camelled<SandboxView>;
export type SandboxSpec = Camelled<SpecInput>;
export type SandboxStats = Camelled<StatsView>;
export type Verification = Camelled<VerifyView>;
export type WorkspaceScan = Camelled<WorkspaceScanView>;

export interface Connection extends ConnectionOptions {
  /** One that is shared with other sandboxes; else one is made. */
  readonly client?: DaemonClient;
}

export interface CreateOptions extends SandboxSpec {
  /** Removed when its command ends, or when this program has gone. */
  readonly ephemeral?: boolean;
  /** With `ephemeral`: this program may go away. */
  readonly detached?: boolean;
  /** Use the sandbox of this name if it is there and has the same spec; then disposal does not remove it. */
  readonly reuse?: boolean;
  /**
   * Whether the workspace's Dockerfile.sallyport may be built: true for what is there now, or the `approval` of what was looked at
   * with `Images.look`. Without it a workspace that has one is refused, unless an image is named.
   */
  readonly approveDockerfile?: boolean | string;
  readonly signal?: AbortSignal;
}

type ExecFields = Omit<Camelled<ExecInput>, 'argv' | 'stdin' | 'tty' | 'background'>;

export interface ExecOptions extends ExecFields {
  /** What the command reads; without it, it reads end of file at once. */
  readonly input?: string | Uint8Array | AsyncIterable<Uint8Array>;
  /** Throw `CommandFailedError` unless it ends with 0. */
  readonly check?: boolean;
  /** Kills it inside. */
  readonly signal?: AbortSignal;
}

export interface SpawnOptions extends ExecFields {
  /** The command has an input: end it, or a program that reads to the end waits for ever. */
  readonly stdin?: boolean;
  readonly tty?: { readonly rows: number; readonly columns: number };
  /** Goes on when this program goes away. */
  readonly background?: boolean;
  readonly signal?: AbortSignal;
}

interface Cancel {
  readonly signal?: AbortSignal;
}

const mostAsks = 20;

export class Sandbox implements AsyncDisposable {
  readonly files: SandboxFiles;
  /** What it may reach; `egress_closed` where it was made without egress. */
  readonly net: SandboxNet;
  readonly ports: SandboxPorts;
  /** Chromium inside, driven from here. */
  readonly browser: SandboxBrowser;
  readonly #client: DaemonClient;
  readonly #path: string;
  readonly #owned: boolean;
  readonly #presence = new AbortController();
  #info: SandboxInfo;

  private constructor(client: DaemonClient, view: SandboxView, owned: boolean) {
    this.#client = client;
    this.#info = camelled(view);
    this.#owned = owned;
    this.#path = `/v1/sandboxes/${segment(view.id)}`;
    this.files = new SandboxFiles(client, view.id);
    this.net = new SandboxNet(client, view.id);
    this.ports = new SandboxPorts(client, view.id);
    this.browser = new SandboxBrowser(client, view.id);
  }

  /** Resolves when it is ready. A create that is cancelled goes on in the daemon and is then removed. */
  static async create(options: CreateOptions = {}, connection: Connection = {}): Promise<Sandbox> {
    const { ephemeral, detached, reuse, approveDockerfile, signal, ...given } = options;
    const client = connection.client ?? new DaemonClient(connection);
    const spec = snaked(onThisMachine(given)) as SpecInput;
    const cancel = signal === undefined ? {} : { signal };
    const approved_dockerfile = await approvedDockerfile(client, approveDockerfile, spec, cancel);
    const body = { spec, ephemeral, detached, reuse, approved_dockerfile } as CreateInput;
    // Accepted first: then there is something to remove when the caller does not want it any more.
    const accepted = await client.createSandbox<SandboxView>(body, { query: { wait: false } });
    const sandbox = new Sandbox(client, accepted, reuse !== true);
    if (ephemeral === true && detached !== true) sandbox.#stayPresent();
    try {
      await sandbox.#untilReady(accepted, signal);
      return sandbox;
    } catch (error) {
      if (reuse !== true) await sandbox.remove().catch(() => {});
      sandbox.disconnect();
      throw error;
    }
  }

  /** By name, id or the start of an id. Disposal leaves it alone. */
  static async connect(reference: string, connection: Connection & Cancel = {}): Promise<Sandbox> {
    const client = connection.client ?? new DaemonClient(connection);
    const view = await client.json<SandboxView>(
      'GET',
      `/v1/sandboxes/${segment(reference)}`,
      cancelOf(connection),
    );
    return new Sandbox(client, view, false);
  }

  static async list(
    options: Connection & Cancel & { readonly labels?: Readonly<Record<string, string>> } = {},
  ): Promise<readonly SandboxInfo[]> {
    const client = options.client ?? new DaemonClient(options);
    const label = Object.entries(options.labels ?? {}).map(([key, value]) => `${key}=${value}`);
    const { sandboxes } = await client.json<{ sandboxes: SandboxView[] }>('GET', '/v1/sandboxes', {
      query: { label },
      ...cancelOf(options),
    });
    return sandboxes.map((view) => camelled(view));
  }

  get id(): string {
    return this.#info.id;
  }

  get name(): string {
    return this.#info.name;
  }

  /** As it was when it was last asked for; `refresh` asks again. */
  get info(): SandboxInfo {
    return this.#info;
  }

  async refresh(options: Cancel = {}): Promise<SandboxInfo> {
    return this.#know(await this.#client.json<SandboxView>('GET', this.#path, options));
  }

  /** Runs a command to its end. A command that fails is an outcome, not an error. */
  async exec(argv: readonly string[], options: ExecOptions = {}): Promise<ExecOutcome> {
    const { input, check, signal, ...fields } = options;
    const outcome =
      input === undefined
        ? await this.#execAtOnce({ argv: [...argv], ...fields }, signal)
        : await this.#execWithInput(argv, input, { ...fields, ...(signal === undefined ? {} : { signal }) });
    if (check === true && outcome.exitCode !== 0) throw new CommandFailedError(outcome);
    return outcome;
  }

  /** The same for a line of shell. */
  async sh(script: string, options: ExecOptions = {}): Promise<ExecOutcome> {
    return await this.exec(['/bin/sh', '-c', script], options);
  }

  /** Starts a command and hands it over while it runs. */
  async spawn(argv: readonly string[], options: SpawnOptions = {}): Promise<ExecProcess> {
    const { signal, ...fields } = options;
    const view = await this.#client.json<ExecView>('POST', `${this.#path}/execs`, {
      body: snaked({ argv, ...fields }),
      ...cancelOf(options),
    });
    return this.#process(view.id, {
      owned: options.background !== true,
      stdin: options.stdin ?? false,
      hold: true,
      signal,
    });
  }

  /** A command that runs already, or has run: its output from the beginning, as far as it is kept. */
  attach(execId: string, options: Cancel & { readonly stdin?: boolean } = {}): ExecProcess {
    return this.#process(execId, {
      owned: false,
      stdin: options.stdin ?? false,
      hold: false,
      signal: options.signal,
    });
  }

  async execs(options: Cancel = {}): Promise<readonly ExecInfo[]> {
    const { execs } = await this.#client.json<{ execs: ExecView[] }>('GET', `${this.#path}/execs`, options);
    return execs.map((view) => camelled(view));
  }

  /** What is kept of the output of a command, as bytes. */
  async *logs(
    execId: string,
    options: Cancel & {
      readonly stream?: 'stdout' | 'stderr' | 'output';
      readonly follow?: boolean;
      readonly tail?: number;
    } = {},
  ): AsyncGenerator<Buffer> {
    const { signal, ...query } = options;
    const path = `${this.#path}/execs/${segment(execId)}/logs`;
    yield* (await this.#client.open('GET', path, { query, ...cancelOf(options) })) as AsyncIterable<Buffer>;
  }

  /** What a service of it has printed, as bytes; `tail` counts lines. */
  async *serviceLogs(
    service: string,
    options: Cancel & { readonly follow?: boolean; readonly tail?: number } = {},
  ): AsyncGenerator<Buffer> {
    const { signal, ...query } = options;
    const path = `${this.#path}/services/${segment(service)}/logs`;
    yield* (await this.#client.open('GET', path, { query, ...cancelOf(options) })) as AsyncIterable<Buffer>;
  }

  /** What happens to this sandbox, until the reader stops. */
  events(options: EventOptions = {}): AsyncGenerator<SandboxEvent> {
    return followEvents(this.#client, { ...options, sandbox: this.id });
  }

  /** Files of this machine to the workspace: below `cwd` by their relative path, others by their name. */
  async inject(files: readonly string[], options: InjectOptions = {}): Promise<Injection> {
    return await injectFiles(this.files, this.#info, files, options);
  }

  /**
   * `cleanUp`: one run for files and for commands with `duringCleanUp`. `disk`: changes the disk limit. Both start a sandbox that was
   * stopped with `disk_limit_exceeded`.
   */
  async start(
    options: Cancel & { readonly cleanUp?: boolean; readonly disk?: string | number } = {},
  ): Promise<void> {
    const { cleanUp, disk, ...cancel } = options;
    await this.#change('start', { clean_up: cleanUp, disk }, cancel);
  }

  /** Its files stay. */
  async stop(options: Cancel & { readonly graceMs?: number } = {}): Promise<void> {
    const { graceMs, ...cancel } = options;
    await this.#change('stop', { grace_ms: graceMs }, cancel);
  }

  async pause(options: Cancel = {}): Promise<void> {
    await this.#change('pause', {}, options);
  }

  async resume(options: Cancel = {}): Promise<void> {
    await this.#change('resume', {}, options);
  }

  /** Sees to it that it runs and answers, and starts it if it was stopped. */
  async ensureRunning(options: Cancel = {}): Promise<void> {
    await this.#change('ensure', {}, options);
  }

  /** One that is gone already is no error. `force`: also if changes of a copied workspace are lost. */
  async remove(options: Cancel & { readonly force?: boolean } = {}): Promise<void> {
    const { force, ...cancel } = options;
    this.#presence.abort();
    try {
      await this.#client.json('DELETE', this.#path, { query: { force }, ...cancel });
    } catch (error) {
      if (!isSallyportError(error, 'sandbox_not_found')) throw error;
    }
  }

  /** Reads back from inside what is enforced. */
  async verify(options: Cancel = {}): Promise<Verification> {
    return camelled(await this.#client.json<VerifyView>('GET', `${this.#path}/verify`, options));
  }

  /** What appeared in a live workspace that programs of this machine may execute. Waits for the scan for at most 2 seconds. */
  async scanWorkspace(options: Cancel = {}): Promise<WorkspaceScan> {
    return camelled(
      await this.#client.json<WorkspaceScanView>('GET', `${this.#path}/workspace-scan`, options),
    );
  }

  /** What is different in a copied workspace from what was copied in. */
  async changes(options: Cancel = {}): Promise<WorkspaceChanges> {
    return await this.#changes().list(options);
  }

  /** The same as patches in git's format; folders and what is below `.git` are no part of them. */
  async *diff(options: Cancel = {}): AsyncGenerator<FileDiff> {
    const calls = this.#changes();
    yield* diffChanges(calls, await calls.list(options), options);
  }

  /** Brings the changes back to the folder that was copied. With conflicts nothing is written, unless an option says so. */
  async apply(options: ApplyOptions = {}): Promise<ApplyResult> {
    return await applyChanges(this.#changes(), options);
  }

  /** Brings the commits of a private clone (`workspace.mode: clone`) into `refs/sallyport/<name>/*` of the repository. */
  async bringCommits(options: BringOptions = {}): Promise<BroughtCommits> {
    const { id, name, workspace } = this.#info;
    const { signal } = options;
    const exec = (argv: readonly string[]): Promise<ExecOutcome> =>
      this.exec(argv, { duringCleanUp: true, ...(signal === undefined ? {} : { signal }) });
    return await bringCommits(
      { id, name, workspace, exec, files: this.files, changes: this.#changes() },
      options,
    );
  }

  async stats(options: Cancel = {}): Promise<SandboxStats> {
    return camelled(await this.#client.json<StatsView>('GET', `${this.#path}/stats`, options));
  }

  /** Lets go of it and leaves it as it is. */
  disconnect(): void {
    this.#presence.abort();
  }

  /** Removes what was created here; only lets go of what was connected to. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#owned) await this.remove();
    this.disconnect();
  }

  #changes(): ChangeCalls {
    return new ChangeCalls(this.#client, this.id);
  }

  #process(
    exec: string,
    options: {
      readonly owned: boolean;
      readonly stdin: boolean;
      readonly hold: boolean;
      readonly signal: AbortSignal | undefined;
    },
  ): ExecProcess {
    const { signal, ...rest } = options;
    return new ExecProcess({
      client: this.#client,
      sandbox: this.id,
      exec,
      ...rest,
      ...(signal === undefined ? {} : { signal }),
    });
  }

  /** One request. Its head says which command it is, so that the result is found also if this daemon ends meanwhile. */
  async #execAtOnce(fields: object, signal: AbortSignal | undefined): Promise<ExecOutcome> {
    const cancel = signal === undefined ? {} : { signal };
    let id: string | undefined;
    try {
      // Cancelling cuts the connection, and the daemon then kills the command.
      return outcomeOf(
        await this.#client.json<ExecResultView>('POST', `${this.#path}/execs`, {
          body: snaked(fields),
          query: { wait: true },
          onHead: (headers) => {
            id = headers.get(execIdHeader);
          },
          ...cancel,
        }),
      );
    } catch (error) {
      if (signal?.aborted !== true && isSallyportError(error, 'daemon_gone') && id !== undefined) {
        return outcomeOf(await this.#askFor(id, cancel));
      }
      if (signal?.aborted === true) {
        throw new SallyportError('cancelled', 'the command was cancelled', { cause: error });
      }
      throw error;
    }
  }

  async #askFor(exec: string, cancel: Cancel): Promise<ExecResultView> {
    for (let left = mostAsks; ; left--) {
      try {
        return await this.#client.json<ExecResultView>('GET', `${this.#path}/execs/${exec}/wait`, cancel);
      } catch (error) {
        if (left === 0 || !isSallyportError(error, 'daemon_gone')) throw error;
      }
    }
  }

  async #execWithInput(
    argv: readonly string[],
    input: NonNullable<ExecOptions['input']>,
    options: SpawnOptions,
  ): Promise<ExecOutcome> {
    await using running = await this.spawn(argv, { ...options, stdin: true });
    const { stdin } = running;
    const feeding = feed(stdin, input);
    const outcome = await running.wait();
    // A program that does not read all of its input is no failure; an input that fails is.
    await feeding;
    return outcome;
  }

  async #change(verb: string, body: object, options: Cancel): Promise<void> {
    this.#know(await this.#client.json<SandboxView>('POST', `${this.#path}/${verb}`, { body, ...options }));
  }

  #know(view: SandboxView): SandboxInfo {
    this.#info = camelled(view);
    return this.#info;
  }

  async #untilReady(accepted: SandboxView, signal: AbortSignal | undefined): Promise<void> {
    if (accepted.state === 'READY') return;
    // Waits for the create that is under way, and says why it failed.
    this.#know(
      await this.#client.json<SandboxView>(
        'GET',
        `${this.#path}/ready`,
        signal === undefined ? {} : { signal },
      ),
    );
  }

  /** The daemon removes an ephemeral sandbox when no client is there: a stream of its events is a client. */
  #stayPresent(): void {
    const { signal } = this.#presence;
    void (async () => {
      for await (const _ of this.events({ since: this.#info.sequence, signal })) {
        // What happens is of no interest here.
      }
    })().catch(() => {});
  }
}

async function feed(
  stdin: ExecProcess['stdin'],
  input: string | Uint8Array | AsyncIterable<Uint8Array>,
): Promise<void> {
  const chunks =
    typeof input === 'string' || input instanceof Uint8Array ? [Buffer.from(input as string)] : input;
  for await (const chunk of chunks) {
    if (stdin.destroyed) return;
    if (!stdin.write(chunk)) {
      await new Promise<void>((done) => {
        stdin.once('drain', done);
        stdin.once('close', done);
      });
    }
  }
  stdin.end();
}

const cancelOf = ({ signal }: Cancel): Cancel => (signal === undefined ? {} : { signal });

/** Paths of the host are relative to this program's folder, not to the daemon's. */
function onThisMachine(spec: SandboxSpec): SandboxSpec {
  const { workspace, mounts, copies } = spec;
  return {
    ...spec,
    ...(workspace === undefined ? {} : { workspace: { ...workspace, path: resolve(workspace.path) } }),
    ...(mounts === undefined
      ? {}
      : { mounts: mounts.map((mount) => ({ ...mount, source: resolve(mount.source) })) }),
    ...(copies === undefined
      ? {}
      : { copies: copies.map((copy) => ({ ...copy, source: resolve(copy.source) })) }),
  };
}
