/**
 * Delivers porter to sandboxes: a volume named by the program's hash, filled once and mounted read-only into each, so that
 * any image works, also with a read-only root.
 *
 * SECURITY: a sandbox runs what is in this volume as its first process. Whoever can write to the engine's volumes could
 * plant another program, so the content is read back and compared before it is used. A daemon does so when it first uses
 * a volume, when the volume was made anew, and again when its last look is ten minutes old: reading back costs as much as
 * half a sandbox. In between it trusts those who control the engine, who could as well change the sandbox itself.
 *
 * Everybody may read the program: gVisor cannot run one that the sandbox's user may not read.
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
import { openAlone } from './open-alone.ts';
import type { ContainerBody } from './types.ts';
import { createVolume } from './volumes/create.ts';
import { findVolume, type Volume } from './volumes/inspect.ts';
import { removeVolume } from './volumes/remove.ts';
import type { CallOptions, EngineConnection } from './wire/connection.ts';

const mount = '/porter';
const programMode = 0o555;
const maxReadBackBytes = 16 * 2 ** 20;
const trustedForMs = 10 * 60_000;
/** An archive of one folder: its header, and the two blocks that end it. An entry more is another block. */
const emptyBytes = 3 * 512;

export interface PorterProgram {
  readonly bytes: Buffer;
  readonly hash: string;
}

export function porterVolumeName(hash: string): string {
  return `sallyport-porter-${hash.slice(0, 16)}`;
}

/** What one daemon knows about the volumes that it uses. */
export class PorterVolumes {
  readonly #connection: EngineConnection;
  readonly #nowMs: () => number;
  readonly #verified = new Map<string, { readonly createdAt: string; readonly atMs: number }>();
  readonly #verifying = new Map<string, Promise<void>>();

  constructor(connection: EngineConnection, nowMs: () => number = () => performance.now()) {
    this.#connection = connection;
    this.#nowMs = nowMs;
  }

  /** The volume's name. Not cancelled by who waits: others may wait for the same. */
  async provide(porter: PorterProgram, image: string, options: CallOptions = {}): Promise<string> {
    const name = porterVolumeName(porter.hash);
    const volume = await findVolume(this.#connection, name, options);
    const last = this.#verified.get(name);
    const isFresh = last !== undefined && this.#nowMs() - last.atMs < trustedForMs;
    // An engine makes a volume that a container names and nobody has, and an empty one must not pass for this one.
    if (isFresh && volume !== undefined && isOurs(volume) && volume.createdAt === last.createdAt) return name;
    let verifying = this.#verifying.get(name);
    if (verifying === undefined) {
      verifying = this.#verify(name, porter, image).finally(() => this.#verifying.delete(name));
      this.#verifying.set(name, verifying);
    }
    await verifying;
    return name;
  }

  async #verify(name: string, porter: PorterProgram, image: string): Promise<void> {
    this.#verified.delete(name);
    await ensurePorterVolume(this.#connection, porter, image);
    const volume = await findVolume(this.#connection, name);
    if (volume !== undefined) this.#verified.set(name, { createdAt: volume.createdAt, atMs: this.#nowMs() });
  }
}

const isOurs = ({ labels }: Volume): boolean => labels[label.owned] === 'true';

/** `image` only lends its root to containers that are created and never started; any image that is there will do. */
export async function ensurePorterVolume(
  connection: EngineConnection,
  porter: PorterProgram,
  image: string,
  options: CallOptions = {},
): Promise<string> {
  const name = porterVolumeName(porter.hash);
  await claimVolume(connection, name, porter, image, options);
  const open = (filler: string): Promise<string> =>
    createContainer(connection, { name: filler, body: fillerBody(image, name) }, options);

  const reader = await open(`${name}-reader-${randomBytes(4).toString('hex')}`);
  try {
    if (await isWhole(connection, reader, name, porter, options)) return name;
  } finally {
    await removeContainer(connection, reader);
  }
  const writer = await openAlone(connection, `${name}-writer`, open);
  try {
    if (await isWhole(connection, writer, name, porter, options)) return name;
    await putArchive(connection, writer, mount, await programArchive(porter.bytes), options);
    if (!(await isWhole(connection, writer, name, porter, options))) {
      throw corrupt(name, `porter did not arrive whole in volume ${name}`);
    }
    return name;
  } finally {
    await removeContainer(connection, writer);
  }
}

async function claimVolume(
  connection: EngineConnection,
  name: string,
  porter: PorterProgram,
  image: string,
  options: CallOptions,
): Promise<void> {
  const existing = await findVolume(connection, name, options);
  if (existing !== undefined && isOurs(existing)) return;
  if (existing !== undefined) await removeStandIn(connection, existing, image, options);
  const labels = ownedLabels('porter', { [label.inputs]: porter.hash });
  await createVolume(connection, { name, labels }, options);
}

/**
 * An engine makes a volume that a container names and nobody has: empty and without a label. So one may be in our place, if
 * somebody removed ours at the right moment. Whatever else has our name is somebody's, and stays.
 */
async function removeStandIn(
  connection: EngineConnection,
  { name, labels }: Volume,
  image: string,
  options: CallOptions,
): Promise<void> {
  const isStandIn = Object.keys(labels).length === 0 && (await isEmpty(connection, name, image, options));
  try {
    // Not by force: one that a container uses stays.
    if (isStandIn) return await removeVolume(connection, name, options);
  } catch (error) {
    if (!isSallyportError(error, 'engine_conflict')) throw error;
  }
  throw new SallyportError('engine_conflict', `volume ${name} exists and is not Sallyport's`, {
    details: { volume: name },
    advice: `See what it is and who uses it, then remove it: docker volume rm ${name}`,
  });
}

async function isEmpty(
  connection: EngineConnection,
  name: string,
  image: string,
  options: CallOptions,
): Promise<boolean> {
  const body = fillerBody(image, name);
  const reader = await createContainer(
    connection,
    { name: `${name}-reader-${randomBytes(4).toString('hex')}`, body },
    options,
  );
  try {
    const archive = await getArchive(connection, reader, mount, options);
    let length = 0;
    // Leaving the loop ends the transfer: what is longer than one folder need not be read.
    for await (const chunk of archive as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > emptyBytes) return false;
    }
    return true;
  } finally {
    await removeContainer(connection, reader);
  }
}

function fillerBody(image: string, volume: string): ContainerBody {
  return {
    Image: image,
    Entrypoint: [`${mount}/porter`],
    Labels: ownedLabels('porter-filler'),
    HostConfig: {
      NetworkMode: 'none',
      Mounts: [{ Type: 'volume', Source: volume, Target: mount, VolumeOptions: { NoCopy: true } }],
    },
  };
}

function corrupt(volume: string, message: string): SallyportError {
  return new SallyportError('porter_corrupt', message, {
    details: { volume },
    advice: `Find out who changed it, then remove it: docker volume rm ${volume}`,
  });
}

/**
 * False for nothing, for the beginning of the right thing (a fill that goes on elsewhere, or was cut off), and for the right
 * thing with the wrong mode.
 */
async function isWhole(
  connection: EngineConnection,
  filler: string,
  volume: string,
  porter: PorterProgram,
  options: CallOptions,
): Promise<boolean> {
  const found = await readBack(connection, filler, volume, options);
  if (found === undefined) return false;
  const { bytes, mode } = found;
  if (!porter.bytes.subarray(0, bytes.length).equals(bytes)) {
    throw corrupt(volume, `the porter in volume ${volume} is not the one that belongs there`);
  }
  return bytes.length === porter.bytes.length && (mode & 0o7777) === programMode;
}

async function programArchive(bytes: Buffer): Promise<Readable> {
  const header = {
    name: 'porter',
    type: 'file' as const,
    size: bytes.length,
    mode: programMode,
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
  volume: string,
  options: CallOptions,
): Promise<{ readonly bytes: Buffer; readonly mode: number } | undefined> {
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
    if (length > maxReadBackBytes) throw corrupt(volume, `the porter in volume ${volume} is far too large`);
    chunks.push(chunk);
  }
  const [entry] = await unpackTar(Buffer.concat(chunks));
  if (entry?.header.type !== 'file' || entry.data === undefined) {
    throw corrupt(volume, `the porter in volume ${volume} is not a file`);
  }
  return { bytes: Buffer.from(entry.data), mode: entry.header.mode ?? 0 };
}
