/** The options that `run` and `explain` share, from the command line's words to a request. */

import type { RunRequest } from '../daemon/in-process.ts';
import { SallyportError } from '../protocol/errors.ts';

export interface BoxOptions {
  readonly image?: string;
  readonly profile?: 'standard' | 'strict';
  readonly runtime?: string;
  readonly memory?: number;
  readonly cpus?: number;
  readonly pids?: number;
  readonly env?: readonly string[];
}

const posixPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Everything of a request but how the program's streams are connected. */
export function boxRequest(command: readonly string[], options: BoxOptions): RunRequest {
  const [program, ...rest] = command;
  if (program === undefined) throw new SallyportError('usage', 'no command was given');
  return {
    exec: {
      argv: [program, ...rest],
      env: { PATH: posixPath, HOME: '/tmp', LANG: 'C.UTF-8', ...parseEnv(options.env ?? []) },
    },
    ...(options.image === undefined ? {} : { image: options.image }),
    ...(options.profile === undefined ? {} : { profile: options.profile }),
    ...(options.runtime === undefined ? {} : { runtime: options.runtime }),
    ...(options.memory === undefined ? {} : { memoryBytes: options.memory }),
    ...(options.cpus === undefined ? {} : { cpus: options.cpus }),
    ...(options.pids === undefined ? {} : { pids: options.pids }),
  };
}

function parseEnv(pairs: readonly string[]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at <= 0) {
      throw new SallyportError('usage', `--env ${pair}: write NAME=value; nothing is taken from this shell`);
    }
    env[pair.slice(0, at)] = pair.slice(at + 1);
  }
  return env;
}
