/**
 * A command inside whose output, input, terminal, signals and end are this process's own.
 *
 * The first signal goes to the command, which may have its own end for it; the second one kills it.
 */

import { SallyportError } from '../protocol/errors.ts';
import type { ExecInput } from '../protocol/requests.ts';
import { ExecProcess } from '../sdk/exec-process.ts';
import type { CliContext, Interruption } from './context.ts';
import { DenialSummary } from './denial-summary.ts';
import { exitCodeOf } from './exec-outcome.ts';
import { exitCode } from './exit-codes.ts';
import { printPlanted } from './planted-summary.ts';
import type { SandboxCalls } from './sandbox-calls.ts';
import { feedTerminal, ownTerminalSize } from './terminal.ts';

export interface StreamOptions {
  readonly tty?: true;
  readonly interactive?: true;
}

/** What is piped in is meant for the command; a terminal only when it was asked for. */
export function wantsInput({ tty, interactive }: StreamOptions): boolean {
  return interactive === true || tty === true || !process.stdin.isTTY;
}

export function requireTerminal({ tty }: StreamOptions): void {
  if (tty !== true || process.stdin.isTTY) return;
  throw new SallyportError('usage', '-t needs a terminal, and the input is none', {
    advice: 'Leave -t out; -i alone passes the input on.',
  });
}

/** Runs it to its end. The exit code is the command's, or 128 + n of the signal that ended the wait for it. */
export async function runForeground(
  calls: SandboxCalls,
  box: string,
  command: Omit<ExecInput, 'stdin' | 'tty' | 'background'>,
  options: StreamOptions & {
    /** It goes with its command. */
    readonly ephemeral?: boolean;
    /** The sandbox has no such program. */
    readonly notThere?: () => void;
  },
  context: CliContext,
): Promise<number> {
  const stdin = wantsInput(options);
  const view = await calls.exec(
    box,
    { ...command, stdin, ...(options.tty === true ? { tty: ownTerminalSize() } : {}) },
    { signal: context.signal },
  );
  const running = new ExecProcess({
    client: calls.client,
    sandbox: view.sandbox_id,
    exec: view.id,
    hold: true,
    owned: true,
    stdin,
  });
  const denials =
    view.gated === true ? new DenialSummary(calls, view.sandbox_id, view.denied_before ?? []) : undefined;
  const interrupted = forwardSignals(running, context);
  const stopFeeding = !stdin ? () => {} : options.tty === true ? feedTerminal(running) : feedInput(running);
  try {
    const [ended] = await Promise.all([
      running.ended(),
      pump(running.stdout, process.stdout),
      pump(running.stderr, process.stderr),
    ]);
    await denials?.print(options.ephemeral === true);
    if (view.live === true) await printPlanted(calls, view.sandbox_id, { since: view.started_at });
    const code = interrupted.code() ?? exitCodeOf(ended);
    if (ended.state === 'refused' && code === exitCode.notFound) options.notThere?.();
    return code;
  } finally {
    stopFeeding();
    interrupted.stop();
  }
}

const killedCodes: Readonly<Record<Interruption, number>> = {
  SIGINT: 130,
  SIGTERM: 143,
  SIGHUP: 129,
  SIGPIPE: 141,
};

function forwardSignals(
  running: ExecProcess,
  context: CliContext,
): { readonly code: () => number | undefined; readonly stop: () => void } {
  let count = 0;
  let code: number | undefined;
  const stop = context.takeSignals((signal) => {
    // Nobody reads what it prints any more, or it was asked before: it has to end.
    if (signal === 'SIGPIPE' || ++count > 1) {
      code ??= killedCodes[signal];
      running.kill(0).catch(() => {});
    } else running.signal(signal).catch(() => {});
  });
  return { code: () => code, stop };
}

/** Each chunk counts as taken when it is written: a slow terminal slows the command, not this process's memory. */
export async function pump(chunks: AsyncIterable<Buffer>, stream: NodeJS.WriteStream): Promise<void> {
  let isOpen = true;
  for await (const chunk of chunks) {
    if (isOpen) isOpen = await written(stream, chunk);
  }
}

async function written(stream: NodeJS.WriteStream, chunk: Buffer): Promise<boolean> {
  return await new Promise((resolve, reject) => {
    stream.write(chunk, (error: NodeJS.ErrnoException | null | undefined) => {
      if (error == null) resolve(true);
      // What happens then is decided where signals are.
      else if (error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED') resolve(false);
      else reject(error);
    });
  });
}

export function feedInput(running: ExecProcess): () => void {
  const { stdin } = process;
  const inside = running.stdin;
  const onData = (chunk: Buffer): void => {
    if (inside.destroyed || inside.write(chunk)) return;
    stdin.pause();
    inside.once('drain', () => stdin.resume());
  };
  const onEnd = (): void => void inside.end();
  stdin.on('data', onData).on('end', onEnd).on('error', onEnd);
  return () => {
    stdin.off('data', onData).off('end', onEnd).off('error', onEnd);
    stdin.destroy();
  };
}
