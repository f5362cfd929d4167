/**
 * Delivers porter to sandboxes: a volume named by the program's hash, filled once and mounted read-only into each, so that
 * any image works, also with a read-only root.
 *
 * SECURITY: a sandbox runs what is in this volume as its first process. Whoever can write to the engine's volumes could
 * plant another program, so the content is read back and compared before it is used.
 */

import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { packTar, unpackTar } from 'modern-tar';
import { isSallyportError, SallyportError } from '../../protocol/errors.ts';
import { label, ownedLabels } from '../../protocol/labels.ts';
import { createContainer } from './containers/create.ts';
import { getArchive } from './containers/get-archive.ts';
import { putArchive } from './containers/put-archive.ts';
import { removeContainer } from './containers/remove.ts';
import { createVolume } from './volumes/create.ts';
import { findVolume } from './volumes/inspect.ts';
import type { CallOptions, EngineConnection } from './wire/connection.ts';

const mount = '/porter';
const maxReadBackBytes = 16 * 2 ** 20;

export interface PorterProgram {
  readonly bytes: Buffer;
  readonly hash: string;
}

export function porterVolumeName(hash: string): string {
  return `sallyport-porter-${hash.slice(0, 16)}`;
}

/** `image` only lends its root to a container that is created and never started; any image that is there will do. */
export async function ensurePorterVolume(
  connection: EngineConnection,
  porter: PorterProgram,
  image: string,
  options: CallOptions = {},
): Promise<string> {
  const name = porterVolumeName(porter.hash);
  const existing = await findVolume(connection, name, options);
  if (existing === undefined) {
    await createVolume(
      connection,
      { name, labels: ownedLabels('porter', { [label.inputs]: porter.hash }) },
      options,
    );
  } else if (existing.labels[label.owned] !== 'true') {
    throw new SallyportError('engine_conflict', `volume ${name} exists and is not Sallyport's`, {
      details: { volume: name },
    });
  }
  const filler = await createContainer(
    connection,
    {
      name: `${name}-filler-${randomBytes(4).toString('hex')}`,
      body: {
        Image: image,
        Entrypoint: [`${mount}/porter`],
        Labels: ownedLabels('porter-filler'),
        HostConfig: {
          NetworkMode: 'none',
          Mounts: [{ Type: 'volume', Source: name, Target: mount, VolumeOptions: { NoCopy: true } }],
        },
      },
    },
    options,
  );
  try {
    const found = await readBack(connection, filler, options);
    if (found?.equals(porter.bytes)) return name;
    // Nothing, or the beginning of the right thing: a fill that was cut off, or that goes on in another process.
    if (found !== undefined && !porter.bytes.subarray(0, found.length).equals(found)) {
      throw new SallyportError(
        'porter_corrupt',
        `the porter in volume ${name} is not the one that belongs there`,
        {
          details: { volume: name },
          advice: `Find out who changed it, then remove it: docker volume rm ${name}`,
        },
      );
    }
    await putArchive(connection, filler, mount, await programArchive(porter.bytes), options);
    if (!(await readBack(connection, filler, options))?.equals(porter.bytes)) {
      throw new SallyportError('porter_corrupt', `porter did not arrive whole in volume ${name}`, {
        details: { volume: name },
      });
    }
    return name;
  } finally {
    await removeContainer(connection, filler);
  }
}

async function programArchive(bytes: Buffer): Promise<Readable> {
  const header = {
    name: 'porter',
    type: 'file' as const,
    size: bytes.length,
    mode: 0o555,
    uid: 0,
    gid: 0,
    mtime: new Date(0),
  };
  return Readable.from([Buffer.from(await packTar([{ header, body: bytes }]))]);
}

/** The program that is in the volume; undefined when there is none. */
async function readBack(
  connection: EngineConnection,
  filler: string,
  options: CallOptions,
): Promise<Buffer | undefined> {
  let archive: Readable;
  try {
    archive = await getArchive(connection, filler, `${mount}/porter`, options);
  } catch (error) {
    if (isSallyportError(error, 'engine_not_found')) return undefined;
    throw error;
  }
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of archive as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxReadBackBytes)
      throw new SallyportError('porter_corrupt', 'the porter in its volume is far too large');
    chunks.push(chunk);
  }
  const [entry] = await unpackTar(Buffer.concat(chunks));
  if (entry?.header.type !== 'file' || entry.data === undefined) {
    throw new SallyportError('porter_corrupt', 'the porter in its volume is not a file');
  }
  return Buffer.from(entry.data);
}
