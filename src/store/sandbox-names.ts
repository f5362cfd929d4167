/** Names of the sandboxes that a daemon's folder holds, read without its daemon. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isSandboxId } from '../protocol/ids.ts';

export interface NamedSandbox {
  readonly id: string;
  readonly name: string;
}

/** A record that cannot be read is left out: its own daemon reports it. */
export function readSandboxNames(folder: string): readonly NamedSandbox[] {
  const sandboxes = join(folder, 'sandboxes');
  return namesIn(sandboxes).flatMap((id) => {
    if (!isSandboxId(id)) return [];
    try {
      const { name } = JSON.parse(readFileSync(join(sandboxes, id, 'sandbox.json'), 'utf8')) as {
        readonly name?: unknown;
      };
      return typeof name === 'string' ? [{ id, name }] : [];
    } catch {
      return [];
    }
  });
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
