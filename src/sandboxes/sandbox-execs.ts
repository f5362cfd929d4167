/** The commands of one sandbox: starts them, finds them, and brings them through every new connection. */

import { randomPortion } from '../lib/random-pool.ts';
import type { KnownExec, Porter } from '../porter/porter.ts';
import { SallyportError } from '../protocol/errors.ts';
import { type ExecId, execIdFrom } from '../protocol/ids.ts';
import type { ExecBody } from '../protocol/requests.ts';
import { BoxExec, type ExecWorld } from './box-exec.ts';
import { execEnvironment } from './exec-environment.ts';
import type { ExecRecord, SandboxRecord } from './records.ts';

export class SandboxExecs {
  readonly #world: ExecWorld;
  readonly #execs = new Map<ExecId, BoxExec>();

  constructor(world: ExecWorld, records: readonly ExecRecord[]) {
    this.#world = world;
    for (const record of records) this.#execs.set(record.id, new BoxExec(world, record));
  }

  all(): readonly BoxExec[] {
    return [...this.#execs.values()];
  }

  get running(): readonly BoxExec[] {
    return this.all().filter((exec) => exec.running);
  }

  /** By id, by an unambiguous start of one, or the sandbox's own command by `main`. */
  get(reference: string): BoxExec {
    const exact =
      reference === 'main'
        ? this.all().findLast((exec) => exec.isMain)
        : this.#execs.get(reference as ExecId);
    if (exact !== undefined) return exact;
    const found = this.all().filter(({ id }) => id.startsWith(reference));
    const only = found[0];
    if (only !== undefined && found.length === 1 && reference.length > 3) return only;
    const what = found.length > 1 && reference.length > 3 ? 'several commands match' : 'there is no command';
    throw new SallyportError('exec_not_found', `${what} ${JSON.stringify(reference)}`, {
      details: { exec: reference, sandbox: this.#world.sandboxName },
    });
  }

  forget(id: ExecId): void {
    this.#execs.delete(id);
  }

  start(
    porter: Porter,
    sandbox: SandboxRecord,
    body: ExecBody,
    how: { readonly main?: boolean } = {},
  ): BoxExec {
    const id = execIdFrom(randomPortion(12));
    const { argv, tty } = body;
    const [program, ...rest] = argv;
    if (program === undefined) throw new SallyportError('exec_invalid', 'no program was named');
    const stream = porter.reserveStream();
    const cwd = body.cwd ?? sandbox.plan.workdir;
    const exec = new BoxExec(this.#world, {
      id,
      sandboxId: sandbox.id,
      stream,
      argv,
      cwd,
      tty: tty !== undefined,
      background: body.background,
      main: how.main === true,
      reason: body.reason ?? '',
      startedAt: this.#world.now(),
      ...(body.timeout_ms === 0 ? {} : { endsWithinMs: body.timeout_ms + body.grace_ms }),
      state: 'running',
      stdoutBytes: 0,
      stderrBytes: 0,
    });
    exec.begin(porter, {
      argv: [program, ...rest],
      env: execEnvironment(sandbox, body.envs, tty !== undefined),
      cwd,
      stdin: body.stdin,
      ...(tty === undefined ? {} : { pty: tty }),
      ...(body.timeout_ms === 0 ? {} : { deadlineMs: body.timeout_ms }),
      graceMs: body.grace_ms,
      ...(body.memory_limit_bytes === undefined ? {} : { memoryLimitBytes: body.memory_limit_bytes }),
    });
    this.#execs.set(id, exec);
    return exec;
  }

  /** What runs goes on; what porter does not know never ran. */
  async resume(porter: Porter): Promise<void> {
    const running = this.running;
    if (running.length === 0) return;
    const known = new Map((await porter.list()).map((exec): [number, KnownExec] => [exec.stream, exec]));
    for (const exec of running) {
      const found = known.get(exec.stream);
      if (found !== undefined && found.state !== 'forgotten') await exec.resume(porter, found);
      else await exec.lose(new SallyportError('exec_not_sent', 'the command never reached the sandbox'));
    }
  }

  /** The box ended under them. */
  async lose(why: string): Promise<void> {
    await this.end(new SallyportError('exec_lost', `the sandbox ended while the command ran: ${why}`));
  }

  /** Ends all running execs with this error. */
  async end(error: SallyportError): Promise<void> {
    await Promise.all(this.running.map((exec) => exec.lose(error)));
  }
}
