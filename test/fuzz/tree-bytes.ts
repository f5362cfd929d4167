/** Records of a tree, most of them right. */

import { encodeTreeHeader, type PutHeader } from '../../src/porter/tree-records.ts';
import type { Random } from './random.ts';

const paths = ['a', 'b', 'a/x', 'a/y', 'a/x/z', 'link', 'link/x', 'c/d/e'] as const;
const oddPaths = ['', '.', '..', '/a', 'a/../b', 'a//b', 'a/', 'a\0b', 'x'.repeat(300)] as const;
const kinds = ['file', 'file', 'directory', 'link', 'hardlink', 'other'] as const;

function targetOf(random: Random, kind: (typeof kinds)[number]): string {
  if (kind === 'link') return random.pick(['a', '..', '/etc', 'link']);
  if (kind !== 'hardlink') return '';
  return random.chance(4) ? random.pick(oddPaths) : random.pick(paths);
}

function record(random: Random): Buffer {
  const kind = random.pick(kinds);
  const body = kind === 'file' ? random.bytes(random.below(random.pick([1, 50, 3000]))) : Buffer.alloc(0);
  const header: PutHeader = {
    kind,
    path: Buffer.from(random.chance(12) ? random.pick(oddPaths) : random.pick(paths)),
    mode: random.chance(10) ? random.number() : random.pick([0o644, 0o755, 0o700, 0]),
    mtimeNs: BigInt(random.number()) * BigInt(random.number()),
    sizeBytes: random.chance(40) ? random.number() : body.length,
    target: Buffer.from(targetOf(random, kind)),
  };
  const bytes = Buffer.concat([encodeTreeHeader(header), body]);
  return random.chance(15) ? random.mutate(bytes) : bytes;
}

export function treeRecords(random: Random): Buffer {
  return Buffer.concat(Array.from({ length: 1 + random.below(6) }, () => record(random)));
}
