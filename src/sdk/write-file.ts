/** One file from a sandbox to this machine: there only when all of it is, and never through a link that stands at its name. */

import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { open, rename, unlink } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import type { Piece } from '../lib/content-hash.ts';
import { OpenFolder } from '../lib/open-folder.ts';
import { SparseWriter } from '../lib/sparse-writer.ts';

export async function writeHostFile(path: string, chunks: AsyncIterable<Piece>, mode: number): Promise<void> {
  const name = basename(resolve(path));
  // Both steps are done in the folder that was there at first, whatever takes its name meanwhile.
  const folder = OpenFolder.at(dirname(resolve(path)));
  try {
    const temporary = folder.child(Buffer.from(`.sallyport-${randomBytes(6).toString('hex')}`));
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
    const file = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      try {
        const writer = new SparseWriter(file.fd);
        for await (const chunk of chunks) await writer.write(chunk);
        writer.end();
        await file.chmod(mode);
      } finally {
        await file.close();
      }
      await rename(temporary, folder.child(Buffer.from(name)));
    } catch (error) {
      await unlink(temporary).catch(() => {});
      throw error;
    }
  } finally {
    folder.close();
  }
}
