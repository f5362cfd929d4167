import { deadline } from '../../../lib/deadline.ts';
import { isSallyportError } from '../../../protocol/errors.ts';
import type { CheckResult } from '../../../sandboxes/ports/services.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { Demultiplexer } from '../wire/demultiplex.ts';
import { pathSegment } from '../wire/path-segment.ts';

const mostOutputBytes = 4096;

/**
 * Runs a command in a container to its end, and says whether it succeeded. An engine cannot end what it started like this:
 * a command that takes too long is left behind, and counts as failed.
 */
export async function checkInContainer(
  connection: EngineConnection,
  id: string,
  argv: readonly string[],
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal?: AbortSignal },
): Promise<CheckResult> {
  const limit = deadline(timeoutMs, signal);
  const options = { signal: limit.signal };
  try {
    const exec = await connection.json<{ Id: string }, string>(
      {
        method: 'POST',
        path: `/containers/${pathSegment(id)}/exec`,
        body: { AttachStdout: true, AttachStderr: true, Tty: false, Cmd: argv },
        ...options,
      },
      (answer) => answer.Id.toString(),
    );
    const output = await outputOf(connection, exec, options);
    const exitCode = await connection.json<{ ExitCode: number | null }, number | null>(
      { method: 'GET', path: `/exec/${pathSegment(exec)}/json`, ...options },
      (answer) => answer.ExitCode,
    );
    return { passed: exitCode === 0, output };
  } catch (error) {
    if (signal?.aborted === true || !isSallyportError(error)) throw error;
    if (limit.expired()) return { passed: false, output: `it took longer than ${timeoutMs} ms` };
    // Also of a container that ends at this moment: whoever asks looks at that next.
    return { passed: false, output: error.message };
  } finally {
    limit.dispose();
  }
}

async function outputOf(connection: EngineConnection, exec: string, options: CallOptions): Promise<string> {
  const socket = await connection.hijack({
    method: 'POST',
    path: `/exec/${pathSegment(exec)}/start`,
    body: { Detach: false, Tty: false },
    ...options,
  });
  let output = Buffer.alloc(0);
  const demultiplexer = new Demultiplexer((_name, payload) => {
    output = Buffer.concat([output, payload]).subarray(-mostOutputBytes);
  });
  for await (const chunk of socket as AsyncIterable<Buffer>) demultiplexer.push(chunk);
  return output.toString('utf8').trim();
}
