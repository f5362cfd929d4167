/** Exec over the Engine API, as a competitor would do it: create an exec, start it, read to its end, ask for its status. */

import type { EngineConnection } from '../src/engines/docker/wire/connection.ts';
import { Demultiplexer } from '../src/engines/docker/wire/demultiplex.ts';

export async function engineExec(
  connection: EngineConnection,
  container: string,
  command: readonly string[],
): Promise<number> {
  const { Id } = await connection.json<{ Id: string }>({
    method: 'POST',
    path: `/containers/${container}/exec`,
    body: { Cmd: command, AttachStdout: true, AttachStderr: true },
  });
  const stream = await connection.stream({
    method: 'POST',
    path: `/exec/${Id}/start`,
    body: { Detach: false, Tty: false },
  });
  const demultiplexer = new Demultiplexer(() => {});
  for await (const chunk of stream as AsyncIterable<Buffer>) demultiplexer.push(chunk);
  const { ExitCode } = await connection.json<{ ExitCode: number }>({
    method: 'GET',
    path: `/exec/${Id}/json`,
  });
  return ExitCode;
}
