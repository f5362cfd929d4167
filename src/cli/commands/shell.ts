/** `sally shell`: a login shell that the image has. */

import type { CliContext } from '../context.ts';
import { folderSandbox } from '../folder-sandbox.ts';
import { runForeground } from '../foreground.ts';
import { envPairs } from '../options/pairs.ts';
import { SandboxCalls } from '../sandbox-calls.ts';

export interface ShellOptions {
  readonly env?: readonly string[];
  readonly workdir?: string;
  readonly approve?: true;
}

/** One round trip: the shell that is always there looks for the better one. */
const loginShell = ['/bin/sh', '-c', 'if command -v bash >/dev/null 2>&1; then exec bash -l; fi; exec sh -l'];

export async function shellCommand(
  box: string | undefined,
  options: ShellOptions,
  context: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  const request = { cwd: process.cwd(), approve: options.approve === true };
  const body = {
    argv: loginShell,
    envs: envPairs(options.env ?? []),
    timeout_ms: 0,
    during_clean_up: true,
    ...(options.workdir === undefined ? {} : { cwd: options.workdir }),
  };
  try {
    const name = box ?? (await folderSandbox(calls, request, context));
    return await runForeground(calls, name, body, process.stdin.isTTY ? { tty: true } : {}, context);
  } finally {
    calls.close();
  }
}
