/** The roots that an image trusts by itself, read from inside. */

import { isSallyportError } from '../../protocol/errors.ts';
import { bundlePaths } from './trust-files.ts';

const mostBytes = 4 * 1024 * 1024;

export interface RootFiles {
  readAll(path: string, limitBytes: number): Promise<Buffer>;
}

/** Undefined where it has none: then only the gate's own certificate is trusted. */
export async function readImageRoots(files: RootFiles): Promise<string | undefined> {
  for (const path of bundlePaths) {
    try {
      return (await files.readAll(path, mostBytes)).toString('utf8');
    } catch (error) {
      if (!isSallyportError(error) || !error.code.startsWith('file_')) throw error;
    }
  }
  return undefined;
}
