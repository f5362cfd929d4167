/** `sally exec`: a command in a sandbox that is there, or in this folder's. */

import { SallyportError } from '../../protocol/errors.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import type { folderSandbox } from '../folder-sandbox.ts';
import { requireTerminal, runForeground, type StreamOptions } from '../foreground.ts';
import { envsOf } from '../options/spec-from-options.ts';
import { timeoutOf } from '../options/timeout.ts';
import { print } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';

export interface ExecOptions extends StreamOptions {
  readonly detach?: true;
  readonly env?: readonly string[];
  readonly envFile?: readonly string[];
  readonly workdir?: string;
  readonly timeout?: number;
  readonly approve?: true;
}

export interface ExecWords {
  readonly words: readonly string[];
  /** The first word is the program, not the name of a sandbox. */
  readonly unnamed: boolean;
}

export async function execCommand(
  { words, unnamed }: ExecWords,
  options: ExecOptions,
  context: CliContext,
): Promise<number> {
  const [first = '', second, ...rest] = words;
  const after = second === undefined || second === '--' ? rest : [second, ...rest];
  const argv = unnamed ? words : after;
  if (argv.length === 0) {
    throw new SallyportError('usage', `no command was given to run in ${first}`, {
      advice: `Write sally exec ${first} COMMAND, or sally exec -- COMMAND for the sandbox of this folder.`,
    });
  }
  requireTerminal(options);
  const cwd = process.cwd();
  const body = {
    argv: [...argv],
    envs: envsOf(options, cwd),
    ...(options.workdir === undefined ? {} : { cwd: options.workdir }),
    ...timeoutOf(options),
  };
  const calls = new SandboxCalls();
  try {
    const box = unnamed ? await ownBox(calls, { cwd, approve: options.approve === true }, context) : first;
    if (options.detach !== true) return await runForeground(calls, box, body, options, context);
    const { id } = await calls.exec(
      box,
      { timeout_ms: 0, ...body, background: true },
      { signal: context.signal },
    );
    print(id);
    return exitCode.ok;
  } finally {
    calls.close();
  }
}

/** Loaded only where it is needed: what it takes to make a sandbox is more than it takes to use one. */
async function ownBox(...words: Parameters<typeof folderSandbox>): Promise<string> {
  return await (await import('../folder-sandbox.ts')).folderSandbox(...words);
}
