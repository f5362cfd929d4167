import type { BoxUser } from '../../../protocol/box.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** Runs a command in a running container as this user. It has no streams and outlives the connection. */
export async function execDetached(
  connection: EngineConnection,
  id: string,
  { argv, user }: { readonly argv: readonly string[]; readonly user: BoxUser },
  options: CallOptions = {},
): Promise<void> {
  const exec = await connection.json<{ Id: string }, string>(
    {
      method: 'POST',
      path: `/containers/${pathSegment(id)}/exec`,
      body: { User: `${user.uid}:${user.gid}`, Tty: false, WorkingDir: '/', Cmd: argv },
      ...options,
    },
    (answer) => answer.Id.toString(),
  );
  await connection.json<void>({
    method: 'POST',
    path: `/exec/${pathSegment(exec)}/start`,
    body: { Detach: true, Tty: false },
    ...options,
  });
}
