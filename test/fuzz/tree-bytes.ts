/** Records of a tree, most of them right. */

import { encodeTreeHeader, type TreeHeader } from '../../src/porter/tree-records.ts';
import type { Random } from './random.ts';

const paths = ['a', 'b', 'a/x', 'a/y', 'a/x/z', 'link', 'link/x', 'c/d/e'] as const;
const oddPaths = ['', '.', '..', '/a', 'a/../b', 'a//b', 'a/', 'a\0b', 'x'.repeat(300)] as const;
const kinds = ['file', 'file', 'directory', 'link', 'other'] as const;

function record(random: Random): Buffer {
  const kind = random.pick(kinds);
  const body = kind === 'file' ? random.bytes(random.below(random.pick([1, 50, 3000]))) : Buffer.alloc(0);
  const header: TreeHeader = {
    kind,
    path: Buffer.from(random.chance(12) ? random.pick(oddPaths) : random.pick(paths)),
    mode: random.chance(10) ? random.number() : random.pick([0o644, 0o755, 0o700, 0]),
    mtimeNs: BigInt(random.number()) * BigInt(random.number()),
    sizeBytes: random.chance(40) ? random.number() : body.length,
    target: Buffer.from(kind === 'link' ? random.pick(['a', '..', '/etc', 'link']) : ''),
  };
  const bytes = Buffer.concat([encodeTreeHeader(header), body]);
  return random.chance(15) ? random.mutate(bytes) : bytes;
}

export function treeRecords(random: Random): Buffer {
  return Buffer.concat(Array.from({ length: 1 + random.below(6) }, () => record(random)));
}
