/** Small archives for build contexts and uploads. */

import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { packTar, unpackTar } from 'modern-tar';

export async function tarOf(files: Readonly<Record<string, string | Buffer>>): Promise<Buffer> {
  const entries = Object.entries(files).map(([name, content]) => {
    const body = Buffer.from(content);
    return { header: { name, size: body.length, mode: 0o644 }, body };
  });
  return Buffer.from(await packTar(entries));
}

export async function tarStream(files: Readonly<Record<string, string | Buffer>>): Promise<Readable> {
  return Readable.from([await tarOf(files)], { objectMode: false });
}

/** The regular files of an archive, by name. */
export async function untar(archive: Readable): Promise<ReadonlyMap<string, Buffer>> {
  const entries = await unpackTar(await buffer(archive));
  return new Map(entries.map(({ header, data }) => [header.name, Buffer.from(data ?? [])]));
}
