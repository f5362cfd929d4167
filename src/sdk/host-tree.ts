/** A folder of this machine as the entries of a tree. Links stay links; what is neither file, folder nor link is left out. */

import { hostTree } from '../lib/host-tree.ts';
import type { TreeSource } from '../porter/tree-stream.ts';

export async function* readHostTree(root: string): AsyncGenerator<TreeSource> {
  for await (const entry of hostTree(root)) {
    const { path } = entry;
    const mode = entry.mode & 0o777;
    const mtimeNs = entry.mtimeNs > 0n ? entry.mtimeNs : 0n;
    switch (entry.kind) {
      case 'file':
        yield {
          kind: 'file',
          path,
          mode,
          mtimeNs,
          body: { sizeBytes: entry.sizeBytes, chunks: entry.chunks() },
        };
        break;
      case 'directory':
        yield { kind: 'directory', path, mode, mtimeNs };
        break;
      case 'link':
        yield { kind: 'link', path, target: entry.target, mtimeNs };
        break;
      case 'other':
    }
  }
}
