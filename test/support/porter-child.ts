/** The real porter as a plain child process over pipes: the same program that is PID 1 in a sandbox. */

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { Duplex } from 'node:stream';
import { onTestFinished } from 'vitest';
import { porterBinaryPath } from '../../src/porter/binary.ts';
import type { ExecRequest, ExecResult } from '../../src/porter/exec.ts';
import { OutputQueue } from '../../src/porter/output-queue.ts';
import { queueSink } from '../../src/porter/output-sink.ts';
import { Porter } from '../../src/porter/porter.ts';

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
  const [command = '', ...rest] = [...wrapper, porterBinaryPath(architecture), ...args];
  const child = spawn(command, rest, {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'] ?? '' },
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  child.stdin.on('error', () => {});
  return { child, stream: Duplex.from({ readable: child.stdout, writable: child.stdin }) };
}

export async function connectPorter(child: PorterChild = startPorter()): Promise<Porter> {
  const porter = await Porter.open(child.stream, { epoch: 1, token: randomBytes(32), timeoutMs: 10_000 });
  onTestFinished(() => porter.close());
  return porter;
}

export interface Captured {
  readonly exec: ReturnType<Porter['exec']>;
  readonly stdout: OutputQueue;
  readonly stderr: OutputQueue;
}

/** An exec whose output this process reads. */
export function capture(porter: Porter, request: ExecRequest): Captured {
  const stdout = new OutputQueue();
  const stderr = new OutputQueue();
  return { exec: porter.exec(request, queueSink(stdout, stderr)), stdout, stderr };
}

export type Outcome = ExecResult & { readonly stdout: string; readonly stderr: string };

const env = { PATH: '/usr/local/bin:/usr/bin:/bin' };

/** Runs a program to its end. */
export async function runIn(
  porter: Porter,
  argv: readonly [string, ...string[]],
  more: Partial<ExecRequest> & { readonly input?: Buffer } = {},
): Promise<Outcome> {
  const { input, ...rest } = more;
  const { exec, stdout, stderr } = capture(porter, {
    argv,
    env,
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
