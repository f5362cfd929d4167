/** A temporary folder, and the real porter whose file operations work in it. */

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import type { Files } from '../../src/porter/files.ts';
import type { Porter } from '../../src/porter/porter.ts';
import { connectPorter, type PorterChild, startPorter } from './porter-child.ts';

export interface FilesInFolder {
  readonly files: Files;
  readonly porter: Porter;
  readonly child: PorterChild;
  readonly folder: string;
  /** A path in the folder. */
  readonly at: (...parts: readonly string[]) => string;
}

export async function filesInFolder(start: () => PorterChild = startPorter): Promise<FilesInFolder> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-files-'));
  onTestFinished(async () => {
    // An ordinary user cannot remove what is in a folder that it may not write to.
    await promisify(execFile)('chmod', ['-R', 'u+rwX', folder]);
    await rm(folder, { recursive: true, force: true });
  });
  const child = start();
  const porter = await connectPorter(child);
  return { files: porter.files, porter, child, folder, at: (...parts) => join(folder, ...parts) };
}

export async function gather<T>(source: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of source) all.push(item);
  return all;
}

export async function bytesOf(source: AsyncIterable<Buffer>): Promise<Buffer> {
  return Buffer.concat(await gather(source));
}
