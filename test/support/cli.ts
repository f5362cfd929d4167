/** The built command line, as a user would call it. */

import { type ChildProcess, spawn } from 'node:child_process';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, inject, onTestFinished } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { engineVariables, imageFlags } from './engine-under-test.ts';
import { stateFolder } from './state-folder.ts';

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
    cwd: options.cwd ?? stateFolder(),
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: process.env['HOME'] ?? '/',
      DOCKER_HOST: inject('engine').endpoint,
      SALLYPORT_STATE_DIR: stateFolder(),
      ...engineVariables,
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
  const name = await createBox(args, options);
  removeAfterwards(name, options);
  return name;
}

/** One for all tests of a `describe` that leave it as they found it, or keep to paths of their own. */
export function boxForAll(args: readonly string[] = []): () => string {
  let name = '';
  beforeAll(async () => {
    name = await createBox(args);
  });
  afterAll(async () => {
    if (name !== '') await sally(['rm', '--force', name]);
  });
  return () => name;
}

async function createBox(
  args: readonly string[],
  options: Parameters<typeof startSally>[1] = {},
): Promise<string> {
  const made = await sally(['create', ...imageFlags(), ...args], options);
  if (made.code !== 0) throw new Error(`no sandbox: ${made.stderr}`);
  return made.stdout.trim();
}

export function removeAfterwards(
  name: string,
  { env }: { readonly env?: Record<string, string> } = {},
): void {
  onTestFinished(async () => {
    await sally(['rm', '--force', name], env === undefined ? {} : { env });
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
