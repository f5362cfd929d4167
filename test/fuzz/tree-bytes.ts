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
  if (kind === 'file' && random.chance(5)) return sparse(random, header, body);
  const bytes = Buffer.concat([encodeTreeHeader(header), body]);
  return random.chance(15) ? random.mutate(bytes) : bytes;
}

/** As porter sends a file with a hole at its beginning, or one without its content. */
function sparse(random: Random, header: PutHeader, body: Buffer): Buffer {
  const hole = random.below(100_000);
  const sizeBytes = hole + body.length;
  const head = encodeTreeHeader({ ...header, sizeBytes });
  const isUnsent = random.chance(4);
  head.writeUInt32LE(isUnsent ? 7 : 6, 0);
  if (isUnsent) return head;
  const extents = Buffer.alloc(body.length === 0 ? 16 : 32);
  if (body.length > 0) {
    extents.writeBigUInt64LE(BigInt(hole), 0);
    extents.writeBigUInt64LE(BigInt(body.length), 8);
  }
  extents.writeBigUInt64LE(BigInt(random.chance(20) ? random.number() : sizeBytes), extents.length - 16);
  const bytes = Buffer.concat([head, extents.subarray(0, -16), body, extents.subarray(-16)]);
  return random.chance(15) ? random.mutate(bytes) : bytes;
}

/** As porter sends one file with holes. */
export function extents(random: Random): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  for (let count = random.below(4); count >= 0; count--) {
    const body = count === 0 ? Buffer.alloc(0) : random.bytes(1 + random.below(100));
    at += random.below(60);
    const head = Buffer.alloc(16);
    head.writeBigUInt64LE(BigInt(random.chance(30) ? random.number() : at), 0);
    head.writeBigUInt64LE(BigInt(random.chance(30) ? random.number() : body.length), 8);
    parts.push(head, body);
    at += body.length;
  }
  const bytes = Buffer.concat(parts);
  return random.chance(15) ? random.mutate(bytes) : bytes;
}

export function treeRecords(random: Random): Buffer {
  return Buffer.concat(Array.from({ length: 1 + random.below(6) }, () => record(random)));
}
