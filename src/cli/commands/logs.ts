/** `sally logs`: what a command printed, as it is kept; also as it comes. */

import type { ExecView } from '../../protocol/views.ts';
import { chosenExec } from '../choose-exec.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { folderSandboxName } from '../folder-sandbox.ts';
import { pump } from '../foreground.ts';
import { LastLines } from '../last-lines.ts';
import { print, printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { ago, commandLine, table } from '../table.ts';

export interface LogsOptions {
  readonly follow?: true;
  readonly tail?: number;
  readonly stdout?: true;
  readonly stderr?: true;
  readonly list?: true;
  readonly service?: string;
  readonly json?: true;
}

export async function logsCommand(
  named: string | undefined,
  exec: string | undefined,
  options: LogsOptions,
  { signal }: CliContext,
): Promise<number> {
  const box = named ?? folderSandboxName(process.cwd());
  const calls = new SandboxCalls();
  try {
    if (options.list === true) return await list(calls, box, options, signal);
    if (options.service !== undefined) {
      const { follow = false, tail, service } = options;
      const query = { follow, ...(tail === undefined ? {} : { tail }) };
      await pump(calls.serviceLogs(box, service, query, { signal }), process.stdout);
      return signal.aborted ? exitCode.interrupted : exitCode.ok;
    }
    const id = await chosenExec(calls, box, exec);
    const stream = streamOf(options);
    const printed =
      options.tail === undefined ? 0 : await printTail(calls, box, id, stream, options.tail, signal);
    if (options.tail !== undefined && options.follow !== true) return exitCode.ok;
    const follow = options.follow === true;
    const chunks = calls.logs(box, id, { stream, follow }, { signal });
    await pump(skipped(chunks, printed), process.stdout);
    return signal.aborted ? exitCode.interrupted : exitCode.ok;
  } finally {
    calls.close();
  }
}

function streamOf({ stdout, stderr }: LogsOptions): 'stdout' | 'stderr' | 'output' {
  if (stdout === stderr) return 'output';
  return stdout === true ? 'stdout' : 'stderr';
}

/** Returns how many bytes there were: those that come are after them. */
async function printTail(
  calls: SandboxCalls,
  box: string,
  exec: string,
  stream: 'stdout' | 'stderr' | 'output',
  lines: number,
  signal: AbortSignal,
): Promise<number> {
  const last = new LastLines(lines);
  for await (const chunk of calls.logs(box, exec, { stream }, { signal })) last.push(chunk);
  await pump(last.chunks(), process.stdout);
  return last.totalBytes;
}

async function* skipped(chunks: AsyncIterable<Buffer>, bytes: number): AsyncGenerator<Buffer> {
  let left = bytes;
  for await (const chunk of chunks) {
    if (left < chunk.length) yield chunk.subarray(left);
    left = Math.max(0, left - chunk.length);
  }
}

async function list(
  calls: SandboxCalls,
  box: string,
  options: LogsOptions,
  signal: AbortSignal,
): Promise<number> {
  const execs = await calls.execs(box, { signal });
  if (options.json === true) printJson({ execs });
  else for (const row of table(['EXEC', 'STATE', 'STARTED', 'COMMAND'], execs.map(rowOf))) print(row);
  return exitCode.ok;
}

function rowOf(exec: ExecView): readonly string[] {
  return [exec.id, stateText(exec), ago(exec.started_at), commandLine(exec.argv)];
}

function stateText({ state, exit_code, signal, timed_out }: ExecView): string {
  if (state !== 'exited') return state;
  if (timed_out) return 'timed out';
  return signal === undefined ? `exited ${exit_code}` : signal;
}
