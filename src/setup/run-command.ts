/** Runs a short command of the machine (systemctl, open, umount) to its end, bounded in time and in what it may print. */

import { spawn } from 'node:child_process';

export interface CommandResult {
  /** -1 when it could not be started, was killed, or ran out of time. */
  readonly exitCode: number;
  /** The last of stdout and stderr together, for messages. */
  readonly outputTail: string;
}

export interface CommandOptions {
  readonly environment: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

const keptCharacters = 4_000;

/** Never rejects: how a command ended is its result. An abort ends it, and the caller sees its own signal. */
export async function runCommand(
  command: readonly [string, ...string[]],
  options: CommandOptions,
): Promise<CommandResult> {
  const [program, ...args] = command;
  return await new Promise<CommandResult>((resolve) => {
    let outputTail = '';
    const child = spawn(program, args, {
      env: { ...options.environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: options.timeoutMs,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    const keep = (chunk: string): void => {
      outputTail = (outputTail + chunk).slice(-keptCharacters);
    };
    child.stdout.setEncoding('utf8').on('data', keep);
    child.stderr.setEncoding('utf8').on('data', keep);
    child.on('error', (error) => {
      // An abort is an error too, and its process still has to end; one that never started has no end to wait for.
      if (child.pid === undefined) resolve({ exitCode: -1, outputTail: error.message });
    });
    child.on('close', (code) => resolve({ exitCode: code ?? -1, outputTail: outputTail.trim() }));
  });
}
