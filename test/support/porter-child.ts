/** The real porter as a plain child process over pipes: the same program that is PID 1 in a sandbox. */

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { onTestFinished } from 'vitest';
import { porterBinaryPath } from '../../src/porter/binary.ts';
import type { ExecRequest, ExecResult } from '../../src/porter/exec.ts';
import { OutputQueue } from '../../src/porter/output-queue.ts';
import { queueSink } from '../../src/porter/output-sink.ts';
import { Porter } from '../../src/porter/porter.ts';
import { PipeDuplex } from './pipe-duplex.ts';
import { until } from './until.ts';

export interface PorterChild {
  readonly child: ChildProcess;
  readonly stream: Duplex;
}

export const nativeArchitecture = process.arch === 'arm64' ? 'arm64' : 'amd64';

export function startPorter(
  args: readonly string[] = ['--exit-with-host'],
  wrapper: readonly string[] = [],
  architecture: string = nativeArchitecture,
): PorterChild {
  return startProgram([...wrapper, porterBinaryPath(architecture), ...args]);
}

/** A porter that is somewhere else. */
export function startProgram([command = '', ...args]: readonly string[]): PorterChild {
  const child = spawn(command, args, {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'] ?? '' },
  });
  onTestFinished(() => endPorter(child));
  child.stdin.on('error', () => {});
  return { child, stream: new PipeDuplex(child.stdout, child.stdin) };
}

/** TERM, so that it ends what it started: outside of a pid namespace nothing else would. */
async function endPorter(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await ended;
}

export const testToken = randomBytes(32);

export async function connectPorter(child: PorterChild = startPorter(), epoch = 1): Promise<Porter> {
  return await greet(child.stream, epoch);
}

export async function greet(stream: Duplex, epoch: number, token: Buffer = testToken): Promise<Porter> {
  const porter = await Porter.open(stream, { epoch, token, timeoutMs: 10_000 });
  onTestFinished(() => porter.close());
  return porter;
}

/** Resolves when its second door is open. */
export async function listening(porter: PorterChild): Promise<void> {
  // With the kernel's flag for it: a socket that has its name already may still refuse.
  const line = new RegExp(` 00010000 \\S+ \\S+ +\\d+ @sallyport-porter\\.${porter.child.pid}\\n`);
  await until(() => line.test(readFileSync('/proc/net/unix', 'utf8')));
}

/** The other door: what an engine's exec does in a container. */
export function openRelay(porter: PorterChild): PorterChild {
  const child = spawn(porterBinaryPath(nativeArchitecture), ['relay', String(porter.child.pid)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: {},
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  child.stdin.on('error', () => {});
  return { child, stream: new PipeDuplex(child.stdout, child.stdin) };
}

export interface Captured {
  readonly exec: ReturnType<Porter['exec']>;
  readonly stdout: OutputQueue;
  readonly stderr: OutputQueue;
}

/** An exec whose output this process reads. */
export function capture(porter: Porter, request: ExecRequest, stream?: number): Captured {
  const stdout = new OutputQueue();
  const stderr = new OutputQueue();
  return { exec: porter.exec(request, queueSink(stdout, stderr), stream), stdout, stderr };
}

export type Outcome = ExecResult & { readonly stdout: string; readonly stderr: string };

export const plainEnv = { PATH: '/usr/local/bin:/usr/bin:/bin' };

/** Runs a program to its end. */
export async function runIn(
  porter: Porter,
  argv: ExecRequest['argv'],
  more: Partial<ExecRequest> & { readonly input?: Buffer } = {},
): Promise<Outcome> {
  const { input, ...rest } = more;
  const { exec, stdout, stderr } = capture(porter, {
    argv,
    env: plainEnv,
    cwd: '/',
    stdin: input !== undefined,
    ...rest,
  });
  const feed = async (): Promise<void> => {
    if (input === undefined) return;
    await exec.write(input);
    exec.endStdin();
  };
  const [result, out, err] = await Promise.all([exec.result, collect(stdout), collect(stderr), feed()]);
  exec.forget();
  return { ...result, stdout: out, stderr: err };
}

export async function collect(source: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of source) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** Reads all the time, and says when something has come. */
export class Transcript {
  text = '';
  readonly ended: Promise<void>;
  #wake: () => void = () => {};

  constructor(source: AsyncIterable<Buffer>) {
    this.ended = this.#read(source);
  }

  async #read(source: AsyncIterable<Buffer>): Promise<void> {
    for await (const chunk of source) {
      this.text += chunk.toString('utf8');
      this.#wake();
    }
    this.#wake = () => {};
  }

  async until(wanted: string): Promise<void> {
    while (!this.text.includes(wanted)) {
      const more = new Promise<'more'>((resolve) => {
        this.#wake = () => resolve('more');
      });
      if ((await Promise.race([more, this.ended])) !== 'more' && !this.text.includes(wanted)) {
        throw new Error(`ended before "${wanted}": ${this.text}`);
      }
    }
  }
}

/** The processes below `root`, without supervisors and zombies. */
export function descendants(root: number): readonly number[] {
  const rows = readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        const [state, parent] = stat.replace(/^.*\) /s, '').split(' ');
        const counts = state !== 'Z' && !stat.includes('(porter-exec)');
        return [{ pid: Number(name), parent: Number(parent), counts }];
      } catch {
        return [];
      }
    });
  const below = (parent: number): readonly number[] =>
    rows
      .filter((row) => row.parent === parent)
      .flatMap(({ pid, counts }) => [...(counts ? [pid] : []), ...below(pid)]);
  return below(root);
}
