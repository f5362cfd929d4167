/** `sally run`: a command in a new sandbox; its output, input and exit code are this process's own. */

import type { Exec } from '../../porter/exec.ts';
import type { OutputSink } from '../../porter/output-sink.ts';
import { isSallyportError, SallyportError } from '../../protocol/errors.ts';
import { readCliEnvironment } from '../config.ts';
import { exitCode } from '../exit-codes.ts';
import { note } from '../output.ts';
import type { CliContext } from '../program.ts';
import { progressLine } from '../progress-line.ts';

export interface RunOptions {
  readonly image?: string;
  readonly memory?: number;
  readonly cpus?: number;
  readonly pids?: number;
  readonly env?: readonly string[];
  readonly timings?: true;
}

const posixPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export async function runCommand(
  command: readonly string[],
  options: RunOptions,
  context: CliContext,
): Promise<number> {
  const [program, ...rest] = command;
  if (program === undefined) throw new SallyportError('usage', 'no command was given');
  const { runInProcess } = await import('../../daemon/in-process.ts');
  const line = progressLine();
  try {
    const { result, timings } = await runInProcess(
      {
        argv: [program, ...rest],
        env: { PATH: posixPath, HOME: '/tmp', LANG: 'C.UTF-8', ...parseEnv(options.env ?? []) },
        stdin: !process.stdin.isTTY,
        ...(options.image === undefined ? {} : { image: options.image }),
        ...(options.memory === undefined ? {} : { memoryBytes: options.memory }),
        ...(options.cpus === undefined ? {} : { cpus: options.cpus }),
        ...(options.pids === undefined ? {} : { pids: options.pids }),
      },
      { sink: ownOutput, feed: feedInput },
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
    if (result.outputIncomplete)
      note('a process that outlived the command kept its output open; it was cut off');
    return result.signal === undefined ? (result.exitCode ?? exitCode.sallyportFailed) : 128 + result.signal;
  } catch (error) {
    if (isSallyportError(error, 'exec_start_failed')) return notStarted(program, error);
    throw error;
  } finally {
    line.done();
  }
}

const ms = (value: number): string => `${Math.round(value)} ms`;

/** As Docker and the shells have it: 127 for a program that is not there, 126 for one that may not be executed. */
function notStarted(program: string, error: SallyportError): number {
  const ENOENT = 2;
  note(`${program}: ${error.message}`);
  note(error.advice);
  return error.details['errno'] === ENOENT ? exitCode.notFound : exitCode.notExecutable;
}

export function parseEnv(pairs: readonly string[]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at <= 0)
      throw new SallyportError('usage', `--env ${pair}: write NAME=value; nothing is taken from this shell`);
    env[pair.slice(0, at)] = pair.slice(at + 1);
  }
  return env;
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
