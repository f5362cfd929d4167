/** Runs a TypeScript file of test/support as a Node process of its own: another user, another environment, clean memory. */

import { spawn } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { temporaryFolder } from './little-engine.ts';

export interface ChildOptions {
  readonly args?: readonly string[];
  readonly nodeOptions?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Only root may ask for another user. */
  readonly uid?: number;
}

/** A program of test/support in one file, for `node`; it goes away with the test. */
export async function bundleProgram(
  file: string,
): Promise<{ readonly folder: string; readonly outfile: string }> {
  const folder = temporaryFolder();
  // Another user must be able to read the program.
  chmodSync(folder, 0o755);
  const outfile = join(folder, 'program.mjs');
  await build({
    entryPoints: [fileURLToPath(new URL(file, import.meta.url))],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    logLevel: 'error',
  });
  return { folder, outfile };
}

/** The one JSON value that the program prints. */
export async function runChild<T>(file: string, options: ChildOptions = {}): Promise<T> {
  const { folder, outfile } = await bundleProgram(file);
  const child = spawn(process.execPath, [...(options.nodeOptions ?? []), outfile, ...(options.args ?? [])], {
    cwd: folder,
    env: { PATH: process.env['PATH'], HOME: folder, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
  });
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  try {
    return JSON.parse(output) as T;
  } catch (cause) {
    throw new Error(`${file} printed no JSON: ${output}${errors}`, { cause });
  }
}
