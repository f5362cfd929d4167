/** The built command line, as a user would call it. */

import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { inject } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import './provided.ts';

export interface CliResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stdoutBytes: Buffer;
  readonly stderr: string;
}

export interface RunningCli {
  readonly child: ChildProcess;
  readonly result: Promise<CliResult>;
  /** Resolves as soon as stdout so far contains the text. */
  readonly said: (text: string) => Promise<void>;
}

const entry = join(packageInfo().root, 'dist/cli/main.js');

/** How a shell would call it. */
export function cliLine(): string {
  return `'${process.execPath}' '${entry}'`;
}

export function startSally(
  args: readonly string[],
  options: {
    readonly input?: string | Buffer;
    readonly env?: Record<string, string>;
    readonly command?: readonly string[];
  } = {},
): RunningCli {
  const [command = process.execPath, ...prefix] = options.command ?? [process.execPath, entry];
  const child = spawn(command, [...prefix, ...args], {
    stdio: 'pipe',
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: process.env['HOME'] ?? '/',
      DOCKER_HOST: inject('engine').endpoint,
      SALLYPORT_STATE_DIR: inject('stateDir'),
      ...options.env,
    },
  });
  child.stdin.on('error', () => {});
  child.stdin.end(options.input ?? '');
  let stdout = '';
  const chunks: Buffer[] = [];
  let stderr = '';
  const waiters: Array<() => void> = [];
  child.stdout.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    stdout += chunk.toString('utf8');
    for (const check of waiters) check();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString('utf8');
  });
  const result = new Promise<CliResult>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) =>
      resolve({ code, signal, stdout, stdoutBytes: Buffer.concat(chunks), stderr }),
    );
  });
  const said = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        if (stdout.includes(text)) resolve();
      };
      waiters.push(check);
      check();
      result.then(() => reject(new Error(`ended without saying ${text}: ${stderr}`)), reject);
    });
  return { child, result, said };
}

export async function sally(
  args: readonly string[],
  options: Parameters<typeof startSally>[1] = {},
): Promise<CliResult> {
  return await startSally(args, options).result;
}
