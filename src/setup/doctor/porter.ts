/** The porter binary that sandboxes of this engine would run. */

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { formatSize } from '../../lib/sizes.ts';
import { runCommand } from '../run-command.ts';
import type { Check } from './check.ts';

export interface PorterFacts {
  readonly architecture: string;
  readonly path: string;
  readonly sizeBytes?: number;
  readonly sha256?: string;
  /** Only where the engine's architecture is also this machine's. */
  readonly version?: string;
}

export function checkPorter({ architecture, path, sizeBytes, sha256, version }: PorterFacts): Check {
  const check = { id: 'porter', title: 'porter' } as const;
  if (sizeBytes === undefined || sha256 === undefined) {
    return {
      ...check,
      status: 'fail',
      value: `no binary for ${architecture} at ${path}`,
      advice: 'Run `npm run build` in a checkout, or reinstall the package.',
    };
  }
  const parts = [version, architecture, formatSize(sizeBytes), `sha256 ${sha256.slice(0, 12)}`];
  return { ...check, status: 'ok', value: parts.filter((part) => part !== undefined).join(', ') };
}

export async function gatherPorter(
  packageRoot: string,
  architecture: string,
  environment: Readonly<Record<string, string>>,
): Promise<PorterFacts> {
  const path = join(packageRoot, 'porter', 'build', `porter-${architecture}`);
  const bytes = await readFile(path).catch(() => undefined);
  if (bytes === undefined || bytes.length === 0) return { architecture, path };
  const version = runsHere(architecture) ? await porterVersion(path, environment) : undefined;
  return {
    architecture,
    path,
    sizeBytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    ...(version === undefined ? {} : { version }),
  };
}

function runsHere(architecture: string): boolean {
  const here = process.arch === 'x64' ? 'amd64' : process.arch;
  return process.platform === 'linux' && here === architecture;
}

async function porterVersion(
  path: string,
  environment: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const { exitCode, outputTail } = await runCommand([path, '--version'], { environment, timeoutMs: 3_000 });
  return exitCode === 0 && outputTail !== '' ? outputTail.split('\n')[0] : undefined;
}
