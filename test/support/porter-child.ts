/** The real porter as a plain child process over pipes: the same program that is PID 1 in a sandbox. */

import { type ChildProcess, spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import { onTestFinished } from 'vitest';
import { porterBinaryPath } from '../../src/porter/binary.ts';
import { PorterConnection, type PorterWelcome } from '../../src/porter/connection.ts';

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

export async function connectPorter(
  porter: PorterChild = startPorter(),
): Promise<{ readonly connection: PorterConnection; readonly welcome: PorterWelcome }> {
  const opened = await PorterConnection.open(porter.stream, { timeoutMs: 10_000 });
  onTestFinished(() => opened.connection.close());
  return opened;
}

export async function collect(source: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of source) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
