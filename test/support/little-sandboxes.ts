/**
 * Sandboxes in this process for tests of the API alone: what goes in by one call comes out by another. Events and output
 * are kept by the real store. Nothing about sandboxes themselves is tested against these.
 */

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { ExecSurface, SandboxesSurface, SandboxSurface } from '../../src/daemon/surface.ts';
import { deferred } from '../../src/lib/deferred.ts';
import { ruleText } from '../../src/policy/egress/rule.ts';
import type { Files } from '../../src/porter/files.ts';
import type { BoxRequest } from '../../src/protocol/box.ts';
import { SallyportError } from '../../src/protocol/errors.ts';
import { execIdFrom, sandboxIdFrom } from '../../src/protocol/ids.ts';
import type { CreateBody, ExecBody, NetChange } from '../../src/protocol/requests.ts';
import type { SandboxState } from '../../src/protocol/states.ts';
import type {
  CapturedView,
  ExecView,
  NetView,
  PortView,
  SandboxView,
  WorkspaceScanView,
} from '../../src/protocol/views.ts';
import type { Captured } from '../../src/sandboxes/ports.ts';
import { EventLogFiles } from '../../src/store/event-log.ts';
import { type ExecLogFiles, openExecLog } from '../../src/store/exec-log.ts';

export class LittleExec implements ExecSurface {
  readonly id = execIdFrom(randomBytes(12));
  readonly kept: ExecLogFiles;
  readonly body: ExecBody;
  readonly done: string[] = [];
  readonly taken: Buffer[] = [];
  /** Input is taken only while this is resolved. */
  appetite: Promise<void> = Promise.resolve();
  holders = 0;
  expectsReader = false;
  inputBytes = 0;
  readonly #sandbox: string;
  readonly #ended = deferred<void>();
  #exit: number | undefined;

  constructor(sandbox: string, body: ExecBody, log: ExecLogFiles) {
    this.#sandbox = sandbox;
    this.body = body;
    this.kept = log;
  }

  get known(): Promise<void> {
    return this.#ended.promise;
  }

  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  async print(channel: 'stdout' | 'stderr', data: Buffer): Promise<void> {
    await this.kept.write(channel, this.kept.stored[channel], data);
  }

  async exit(code: number): Promise<void> {
    this.#exit = code;
    await this.kept.end();
    this.#ended.resolve();
  }

  view(): ExecView {
    const { stdout, stderr } = this.kept.stored;
    return {
      id: this.id,
      sandbox_id: this.#sandbox,
      argv: this.body.argv,
      cwd: this.body.cwd ?? '/tmp',
      tty: this.body.tty !== undefined,
      state: this.#exit === undefined ? 'running' : 'exited',
      started_at: new Date(0).toISOString(),
      timed_out: false,
      oom_killed: false,
      memory_limit_exceeded: false,
      killed: false,
      output_incomplete: false,
      left_behind: 0,
      stdout_bytes: stdout,
      stderr_bytes: stderr,
      ...(this.#exit === undefined ? {} : { exit_code: this.#exit }),
    };
  }

  async log(): Promise<ExecLogFiles> {
    return this.kept;
  }

  async knownResult() {
    await this.ended;
    const shown = ({ data, truncated, totalBytes }: Captured): CapturedView => ({
      encoding: 'base64',
      data: data.toString('base64'),
      truncated,
      total_bytes: totalBytes,
    });
    return {
      exec: this.view(),
      stdout: shown(await this.kept.capture('stdout', 1000)),
      stderr: shown(await this.kept.capture('stderr', 1000)),
      output: shown(await this.kept.capture('output', 1000)),
    };
  }

  async write(data: Buffer): Promise<void> {
    await this.appetite;
    this.taken.push(data);
    this.inputBytes += data.length;
  }

  onInputTaken(): () => void {
    // All of it is taken when it is written.
    return () => {};
  }

  endStdin(): void {
    this.done.push('end');
  }

  signal(name: string): void {
    if (name === 'SIGNONE') throw new SallyportError('usage', 'no signal');
    this.done.push(name);
  }

  async kill(graceMs: number): Promise<void> {
    this.done.push(`kill ${graceMs}`);
    await this.exit(137);
  }

  resize(rows: number, columns: number): void {
    this.done.push(`${rows}x${columns}`);
  }

  hold(): () => void {
    this.holders++;
    return () => void this.holders--;
  }

  async expectReader(): Promise<void> {
    this.expectsReader = true;
  }

  readerCame(): void {
    this.expectsReader = false;
  }
}

export class LittleSandbox implements SandboxSurface {
  rules: NetChange = { allow: [], deny: [] };
  readonly recovered = Promise.resolve();
  readonly id = sandboxIdFrom(randomBytes(10));
  readonly name: string;
  state: SandboxState = 'READY';
  readonly isElsewhere = false;
  holders = 0;
  readonly all: LittleExec[] = [];
  readonly done: string[] = [];
  /** What `ready` waits for. */
  making: Promise<void> = Promise.resolve();
  fileSystem: Files | undefined;
  /** What a scan at its end finds. */
  planted: WorkspaceScanView | undefined;
  readonly #folder: string;
  readonly #labels: Record<string, string>;

  constructor(folder: string, body: CreateBody) {
    this.#folder = folder;
    this.name = body.spec.name ?? this.id;
    this.#labels = body.spec.labels ?? {};
  }

  view(): SandboxView {
    return {
      id: this.id,
      name: this.name,
      state: this.state,
      sequence: 1,
      created_at: new Date(0).toISOString(),
      image: 'image',
      user: { uid: 1000, gid: 1000, home: '/home/sally' },
      workdir: '/tmp',
      limits: { memory_bytes: 1, cpus: 1, pids: 1, nofile: 1, disk_bytes: 1 },
      disk: {},
      labels: this.#labels,
      isolation: {
        engine: 'none',
        engine_version: '0',
        runtime: 'none',
        profile: 'standard',
        network: 'none',
      },
      services: [],
      ports: [],
      ephemeral: false,
      running_execs: 0,
    };
  }

  async ready(): Promise<void> {
    await this.making;
  }

  async ensureRunning(): Promise<void> {
    this.done.push('ensure');
  }

  async start(): Promise<void> {
    this.done.push('start');
  }

  async stop(graceMs: number): Promise<WorkspaceScanView | undefined> {
    this.done.push(`stop ${graceMs}`);
    this.state = 'STOPPED';
    return this.planted;
  }

  async pause(): Promise<void> {
    this.done.push('pause');
  }

  async resume(): Promise<void> {
    this.done.push('resume');
  }

  async remove({
    force,
    scan = false,
  }: {
    readonly force: boolean;
    readonly scan?: boolean;
  }): Promise<WorkspaceScanView | undefined> {
    this.done.push(`remove ${force}`);
    return scan ? this.planted : undefined;
  }

  async exec(body: ExecBody): Promise<LittleExec> {
    const log = await openExecLog(join(this.#folder, `${this.id}-${this.all.length}`));
    const exec = new LittleExec(this.id, body, log);
    this.all.push(exec);
    return exec;
  }

  execs(): readonly LittleExec[] {
    return this.all;
  }

  getExec(reference: string): LittleExec {
    const exec = this.all.find(({ id }) => id === reference);
    if (exec === undefined) throw new SallyportError('exec_not_found', 'no such command');
    return exec;
  }

  async files(): Promise<Files> {
    if (this.fileSystem === undefined) throw new SallyportError('sandbox_state', 'no files');
    return this.fileSystem;
  }

  /** One of each kind. */
  async changes(): ReturnType<SandboxSurface['changes']> {
    const file = { kind: 'file' as const, mode: 0o644, sha256: '0'.repeat(64), sizeBytes: 1 };
    return {
      folder: { source: '/host', target: '/workspace' },
      changes: [
        { path: Buffer.from('file'), before: { ...file, keptAt: 0 }, after: file },
        { path: Buffer.from([0xff]), after: { kind: 'link', target: Buffer.from([0xfe]) } },
        { path: Buffer.from('folder'), before: { kind: 'directory' } },
        { path: Buffer.from('pipe'), after: { kind: 'other' } },
      ],
    };
  }

  async baseContent(path: Buffer): Promise<Buffer> {
    return path;
  }

  async moveBaseline(): Promise<void> {}

  async publish(): Promise<PortView> {
    throw new SallyportError('port_unavailable', 'nothing is published here');
  }

  async connect(): Promise<Duplex> {
    throw new SallyportError('port_unavailable', 'nothing listens here');
  }

  async unpublish(host: number): Promise<void> {
    throw new SallyportError('port_not_published', `port ${host} is not published`);
  }

  async serviceLogs(service: string): Promise<AsyncIterable<Buffer>> {
    throw new SallyportError('service_not_found', `there is no service ${service}`);
  }

  async stats() {
    return { at: new Date(0).toISOString(), memory_bytes: 1, memory_limit_bytes: 2, cpu_seconds: 3, pids: 4 };
  }

  net(): NetView {
    const texts = (rules: NetChange['allow']): string[] => rules.map(ruleText);
    return {
      mode: 'deny',
      allow: texts(this.rules.allow),
      deny: texts(this.rules.deny),
      presets: [],
      upstream: 'direct',
      open_connections: 0,
      denied: [],
      reached: [],
    };
  }

  async changeNet(change: NetChange): Promise<NetView> {
    this.rules = change;
    return this.net();
  }

  async *netLog(): AsyncGenerator<never> {}

  async verify() {
    return { ok: true, checks: [] };
  }

  async scan() {
    this.done.push('scan');
    return this.planted;
  }

  provisionSource() {
    return { image: 'base', image_id: 'sha256:0' };
  }

  hold(): () => void {
    this.holders++;
    return () => void this.holders--;
  }
}

export class LittleSandboxes implements SandboxesSurface {
  readonly events: EventLogFiles;
  readonly all: LittleSandbox[] = [];
  kept: boolean | undefined;
  /** Given to what is created next. */
  making: Promise<void> = Promise.resolve();
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.events = new EventLogFiles(join(folder, 'events'));
  }

  static async open(): Promise<{
    readonly sandboxes: LittleSandboxes;
    readonly folder: string;
    readonly close: () => Promise<void>;
  }> {
    const folder = await mkdtemp(join(tmpdir(), 'sally-api-'));
    const sandboxes = new LittleSandboxes(folder);
    const close = async (): Promise<void> => {
      sandboxes.events.close();
      for (const { all } of sandboxes.all) for (const { kept } of all) await kept.end();
      await rm(folder, { recursive: true, force: true });
    };
    return { sandboxes, folder, close };
  }

  async engineReachable(): Promise<boolean> {
    return true;
  }

  list(): readonly LittleSandbox[] {
    return this.all;
  }

  get(reference: string): LittleSandbox {
    const found = this.all.find(({ id, name }) => id === reference || name === reference);
    if (found === undefined) {
      throw new SallyportError('sandbox_not_found', `there is no sandbox ${reference}`, {
        details: { sandbox: reference },
      });
    }
    return found;
  }

  async create(body: CreateBody): Promise<LittleSandbox> {
    const sandbox = new LittleSandbox(this.#folder, body);
    sandbox.making = this.making;
    this.all.push(sandbox);
    return sandbox;
  }

  async explain(body: CreateBody) {
    const box = { name: body.spec.name ?? 'x' } as BoxRequest;
    return { box, home: { uid: 1, gid: 1, home: '/', workdir: '/' }, notes: [] };
  }

  async prune({ dryRun }: { readonly dryRun: boolean }) {
    return [
      {
        kind: 'sandbox' as const,
        id: 'sb-0',
        name: 'old',
        why: 'its workspace is gone',
        sizeBytes: 7,
        outcome: dryRun ? ('would_be_removed' as const) : ('removed' as const),
      },
    ];
  }

  async shutdown(keep: boolean): Promise<void> {
    this.kept = keep;
  }
}
