/** `sally run`: a command in a new sandbox; its output, input, terminal and exit code are this process's own. */

import type { Exec, ExecResult } from '../../porter/exec.ts';
import type { OutputSink } from '../../porter/output-sink.ts';
import { isSallyportError, SallyportError } from '../../protocol/errors.ts';
import { readCliEnvironment } from '../config.ts';
import { exitCode } from '../exit-codes.ts';
import { note } from '../output.ts';
import type { CliContext } from '../program.ts';
import { progressLine } from '../progress-line.ts';
import { type BoxOptions, boxRequest } from '../run-options.ts';
import { feedTerminal, ownTerminalSize } from '../terminal.ts';

export interface RunOptions extends BoxOptions {
  readonly tty?: true;
  readonly interactive?: true;
  readonly timeout?: number;
  readonly timings?: true;
}

export async function runCommand(
  command: readonly string[],
  options: RunOptions,
  context: CliContext,
): Promise<number> {
  const request = boxRequest(command, options);
  if (options.tty === true && !process.stdin.isTTY) {
    throw new SallyportError('usage', '-t needs a terminal, and the input is none');
  }
  const { runInProcess } = await import('../../daemon/in-process.ts');
  const line = progressLine();
  const exec = {
    ...request.exec,
    // What is piped in is meant for the command; a terminal only when it was asked for.
    stdin: options.interactive === true || options.tty === true || !process.stdin.isTTY,
    ...(options.tty === true ? { pty: ownTerminalSize(), env: withTerm(request.exec.env) } : {}),
    ...(options.timeout === undefined ? {} : { deadlineMs: options.timeout }),
  };
  try {
    const { result, timings } = await runInProcess(
      { ...request, exec },
      { sink: ownOutput, feed: options.tty === true ? feedTerminal : feedInput },
      {
        progress: line.report,
        consent: async (packages) => {
          line.done();
          const { askConsent } = await import('../../setup/ask-consent.ts');
          const what = `${packages.join(', ')} with apt-get`;
          return await askConsent({ what, agreed: readCliEnvironment().ci, say: note }, context.signal);
        },
        prepared: line.done,
        signal: context.signal,
      },
    );
    if (options.timings) {
      const { createMs, startMs, execMs, removeMs } = timings;
      note(`create ${ms(createMs)}, start ${ms(startMs)}, run ${ms(execMs)}, remove ${ms(removeMs)}`);
    }
    return outcome(result);
  } catch (error) {
    if (isSallyportError(error, 'exec_start_failed')) return notStarted(String(request.exec.argv[0]), error);
    throw error;
  } finally {
    line.done();
  }
}

const ms = (value: number): string => `${Math.round(value)} ms`;

function withTerm(env: Readonly<Record<string, string>>): Record<string, string> {
  return { TERM: 'xterm-256color', ...env };
}

function outcome(result: ExecResult): number {
  if (result.timedOut) {
    note('the command ran out of time and was ended with everything that it had started');
    return exitCode.timeout;
  }
  if (result.outputIncomplete) {
    note('a process that outlived the command kept its output open; it was cut off');
  }
  return result.signal === undefined ? (result.exitCode ?? exitCode.sallyportFailed) : 128 + result.signal;
}

/** As Docker and the shells have it: 127 for a program that is not there, 126 for one that may not be executed. */
function notStarted(program: string, error: SallyportError): number {
  const ENOENT = 2;
  note(`${program}: ${error.message}`);
  note(error.advice);
  return error.details['errno'] === ENOENT ? exitCode.notFound : exitCode.notExecutable;
}

/** Each chunk counts as taken when it is written: a slow terminal slows the command, not this process's memory. */
const ownOutput: OutputSink = {
  write: (channel, _offset, data) =>
    new Promise((resolve, reject) => {
      process[channel].write(data, (error) => (error == null ? resolve() : reject(error)));
    }),
  end: () => {},
};

function feedInput(exec: Exec): () => void {
  if (process.stdin.isTTY) return () => {};
  const onData = (chunk: Buffer): void => {
    process.stdin.pause();
    void exec.write(chunk).then(() => process.stdin.resume());
  };
  const onEnd = (): void => exec.endStdin();
  process.stdin.on('data', onData).on('end', onEnd).on('error', onEnd);
  return () => {
    process.stdin.off('data', onData).off('end', onEnd).off('error', onEnd);
    process.stdin.destroy();
  };
}
