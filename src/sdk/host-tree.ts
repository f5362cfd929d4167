/** Reads a folder of this machine as the entries of a tree. Links stay links; what is neither file, folder nor link is left out. */

import { constants } from 'node:fs';
import { lstat, open, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { TreeSource } from '../porter/tree-stream.ts';

export async function* readHostTree(root: string, inside = ''): AsyncGenerator<TreeSource> {
  const names = (await readdir(join(root, inside))).sort();
  for (const name of names) {
    const path = inside === '' ? name : `${inside}/${name}`;
    const full = join(root, path);
    const facts = await lstat(full, { bigint: true });
    const mode = Number(facts.mode) & 0o777;
    const mtimeNs = facts.mtimeNs > 0n ? facts.mtimeNs : 0n;
    if (facts.isDirectory()) {
      yield { kind: 'directory', path, mode, mtimeNs };
      yield* readHostTree(root, path);
    } else if (facts.isSymbolicLink()) {
      yield { kind: 'link', path, target: await readlink(full), mtimeNs };
    } else if (facts.isFile()) {
      yield { kind: 'file', path, mode, mtimeNs, body: { sizeBytes: Number(facts.size), chunks: readHostFile(full) } };
    }
  }
}

export async function* readHostFile(path: string): AsyncGenerator<Buffer> {
  // Neither through a link that was put there meanwhile, nor waiting for the other end of a pipe.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    yield* file.createReadStream({ autoClose: false, highWaterMark: 64 * 1024 }) as AsyncIterable<Buffer>;
  } finally {
    await file.close();
  }
}
