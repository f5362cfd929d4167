/** The porter programs that ship with this package, one per architecture, and the hash that names each. */

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageInfo } from '../lib/package-root.ts';
import { SallyportError } from '../protocol/errors.ts';

export interface PorterBinary {
  readonly bytes: Buffer;
  /** SHA-256 of the program, in hex. */
  readonly hash: string;
}

export function porterBinaryPath(architecture: string): string {
  return join(packageInfo().root, 'porter', 'build', `porter-${architecture}`);
}

/** What prepares a box of bubblewrap on the host. */
export function keeperBinaryPath(architecture: string): string {
  return join(packageInfo().root, 'porter', 'build', `keeper-${architecture}`);
}

export async function readPorterBinary(architecture: string): Promise<PorterBinary> {
  const path = porterBinaryPath(architecture);
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    throw new SallyportError('porter_missing', `there is no porter for ${architecture} (${path})`, {
      cause,
      details: { architecture, path },
    });
  }
  return { bytes, hash: createHash('sha256').update(bytes).digest('hex') };
}
