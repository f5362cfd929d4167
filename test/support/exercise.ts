/** What must work with an engine whichever way leads to it: a call, a pulled body, an upload and an attached stream. */

import { once } from 'node:events';
import { expect, onTestFinished } from 'vitest';
import { attachContainer } from '../../src/engines/docker/containers/attach.ts';
import { getArchive } from '../../src/engines/docker/containers/get-archive.ts';
import { putArchive } from '../../src/engines/docker/containers/put-archive.ts';
import { startContainer } from '../../src/engines/docker/containers/start.ts';
import { engineVersion } from '../../src/engines/docker/system/version.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { makeContainer, type TestEngine } from './engine.ts';
import { tarStream, untar } from './tar.ts';

export async function exerciseConnection(engine: TestEngine, connection: EngineConnection): Promise<void> {
  expect((await engineVersion(connection)).os).toBe('linux');
  const id = await makeContainer(engine, { Cmd: ['cat'], OpenStdin: true, AttachStdin: true });
  const content = Buffer.alloc(2 * 2 ** 20, 'sallyport');
  await putArchive(connection, id, '/tmp', await tarStream({ file: content }));
  const files = await untar(await getArchive(connection, id, '/tmp/file'));
  expect(files.get('file')?.equals(content)).toBe(true);
  await expect(getArchive(connection, id, '/no/such')).rejects.toMatchObject({ code: 'engine_not_found' });

  const door = await attachContainer(connection, id);
  onTestFinished(() => {
    door.destroy();
  });
  await startContainer(connection, id);
  for (const word of ['one', 'two']) {
    door.write(word);
    expect((await once(door, 'data'))[0].toString()).toBe(word);
  }
  const closed = new Promise<void>((resolve) => door.once('close', () => resolve()));
  door.destroy();
  await closed;
}
