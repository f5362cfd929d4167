/**
 * Runs a program of an image once, hardened as a sandbox is, and hands back its output. Nothing of the host is inside, and
 * porter is not either: the question is what the image can do by itself.
 */

import { deadline } from '../../lib/deadline.ts';
import type { BoxRequest } from '../../protocol/box.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { boxBody, podmanTraits } from './box-body.ts';
import { attachContainer } from './containers/attach.ts';
import { createContainer } from './containers/create.ts';
import { removeContainer } from './containers/remove.ts';
import { startContainer } from './containers/start.ts';
import { engineVersion, isPodman } from './system/version.ts';
import type { ContainerBody } from './types.ts';
import type { EngineConnection } from './wire/connection.ts';

export interface TryOutOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export async function tryOut(
  connection: EngineConnection,
  box: BoxRequest,
  argv: readonly string[],
  { timeoutMs, signal }: TryOutOptions,
): Promise<string> {
  const limit = deadline(timeoutMs, signal);
  const body = isPodman(await engineVersion(connection)) ? boxBody(box, podmanTraits) : boxBody(box);
  const id = await createContainer(connection, { name: box.name, body: ofTheImage(body, argv) });
  try {
    const door = await attachContainer(connection, id, { signal: limit.signal });
    const giveUp = (): void => void door.destroy(new Error('the program was not waited for'));
    limit.signal.addEventListener('abort', giveUp, { once: true });
    try {
      await startContainer(connection, id, { signal: limit.signal });
      const pieces: Buffer[] = [];
      for await (const piece of door as AsyncIterable<Buffer>) pieces.push(piece);
      return Buffer.concat(pieces).toString('utf8');
    } finally {
      limit.signal.removeEventListener('abort', giveUp);
      door.destroy();
    }
  } catch (error) {
    if (signal?.aborted === true)
      throw new SallyportError('cancelled', `the look at ${box.image} was cancelled`, { cause: error });
    if (!limit.expired()) throw error;
    throw new SallyportError('engine_timeout', `a program of ${box.image} ran longer than ${timeoutMs} ms`, {
      details: { image: box.image },
      cause: error,
    });
  } finally {
    limit.dispose();
    await removeContainer(connection, id);
  }
}

/** The image's own program in porter's place. */
function ofTheImage(body: ContainerBody, argv: readonly string[]): ContainerBody {
  return {
    ...body,
    Entrypoint: argv.slice(0, 1),
    Cmd: argv.slice(1),
    // Nobody writes to it: a program that reads would wait for ever.
    AttachStdin: false,
    OpenStdin: false,
    HostConfig: { ...body.HostConfig, Mounts: [] },
  };
}
