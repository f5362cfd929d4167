/** The docker context that docker's settings have in use. Client and daemon choose their engine by it, and so by the same rule. */

import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Undefined: none, or settings that cannot be read, about which discovery reports. */
export function currentContext(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const folder = env['DOCKER_CONFIG'] || join(env['HOME'] || homedir(), '.docker');
  try {
    const { currentContext: name } = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as {
      currentContext?: unknown;
    };
    return typeof name === 'string' && name !== '' ? name : undefined;
  } catch {
    return undefined;
  }
}
