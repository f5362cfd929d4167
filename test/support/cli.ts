/** The built command line, as a user would call it. */

import { type ChildProcess, spawn } from 'node:child_process';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject, onTestFinished } from 'vitest';
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

const entry = join(packageInfo().root, 'dist/cli/sally.cjs');
/** As the entry calls itself: without `--` Node takes some of our options for its own. */
const program = [process.execPath, '--', entry];

/** How a shell would call it. */
export function cliLine(): string {
  return program.map((word) => `'${word}'`).join(' ');
}

export function startSally(
  args: readonly string[],
  options: {
    readonly input?: string | Buffer;
    readonly env?: Record<string, string>;
    readonly command?: readonly string[];
    readonly cwd?: string;
    /** Left open, for tests that write to it. */
    readonly openInput?: boolean;
  } = {},
): RunningCli {
  const [command = process.execPath, ...prefix] = options.command ?? program;
  const child = spawn(command, [...prefix, ...args], {
    stdio: 'pipe',
    // Not this checkout: a sallyport.yaml or the folder's own sandbox would be found here.
    cwd: options.cwd ?? inject('stateDir'),
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: process.env['HOME'] ?? '/',
      DOCKER_HOST: inject('engine').endpoint,
      SALLYPORT_STATE_DIR: inject('stateDir'),
      ...options.env,
    },
  });
  child.stdin.on('error', () => {});
  if (options.openInput !== true) child.stdin.end(options.input ?? '');
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

/** The name of a new sandbox of the test image, removed at the end of the test whatever became of it. */
export async function makeBox(
  args: readonly string[] = [],
  options: Parameters<typeof startSally>[1] = {},
): Promise<string> {
  const made = await sally(['create', '--image', inject('engine').image, ...args], options);
  if (made.code !== 0) throw new Error(`no sandbox: ${made.stderr}`);
  const name = made.stdout.trim();
  removeAfterwards(name);
  return name;
}

export function removeAfterwards(name: string): void {
  onTestFinished(async () => {
    await sally(['rm', '--force', name]);
  });
}

/** Empty, and gone after the test. With `shared` not root's: a live workspace of root is refused. */
export async function newFolder(use: 'own' | 'shared' = 'shared'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-cli-'));
  onTestFinished(async () => {
    await rm(folder, { recursive: true, force: true });
  });
  if (use === 'shared' && process.getuid?.() === 0) await chown(folder, 1000, 1000);
  return folder;
}
