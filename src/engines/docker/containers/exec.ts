import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { Door } from '../wire/door.ts';
import { pathSegment } from '../wire/path-segment.ts';

export interface ContainerExec {
  readonly argv: readonly string[];
  /** `uid:gid`; absent: the container's own user. */
  readonly user?: string;
}

/** Runs a command in a running container and takes its stdin, stdout and stderr. It ends when its input ends, if it cares to. */
export async function execInContainer(
  connection: EngineConnection,
  id: string,
  { argv, user }: ContainerExec,
  options: CallOptions = {},
): Promise<Door> {
  const exec = await connection.json<{ Id: string }, string>(
    {
      method: 'POST',
      path: `/containers/${pathSegment(id)}/exec`,
      // Not where the container works: the host may have removed that folder, and then no exec would start.
      body: {
        AttachStdin: true,
        AttachStdout: true,
        AttachStderr: true,
        Tty: false,
        WorkingDir: '/',
        Cmd: argv,
        ...(user === undefined ? {} : { User: user }),
      },
      ...options,
    },
    (answer) => answer.Id.toString(),
  );
  const socket = await connection.hijack({
    method: 'POST',
    path: `/exec/${pathSegment(exec)}/start`,
    body: { Detach: false, Tty: false },
    ...options,
  });
  return new Door(socket, connection.endpoint);
}
