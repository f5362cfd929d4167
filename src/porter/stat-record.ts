/** What porter tells about one file. */

import type { PayloadReader } from './payload.ts';
import { violation } from './violation.ts';

export type FileKind = 'file' | 'directory' | 'link' | 'other';

export interface FileStat {
  readonly kind: FileKind;
  /** Permission bits, with set-id and sticky. */
  readonly mode: number;
  /** Exact below 2^53; code inside can make a sparse file look larger. */
  readonly sizeBytes: number;
  readonly mtimeNs: bigint;
  readonly uid: number;
  readonly gid: number;
  readonly inode: bigint;
  readonly links: number;
}

const kinds: readonly FileKind[] = ['file', 'directory', 'link', 'other'];

export function readKind(value: number): FileKind {
  const kind = kinds[value - 1];
  if (kind === undefined) throw violation(`file kind ${value}`);
  return kind;
}

export function kindNumber(kind: FileKind): number {
  return kinds.indexOf(kind) + 1;
}

export function readStat(payload: PayloadReader): FileStat {
  const stat = {
    kind: readKind(payload.u32()),
    mode: payload.u32(),
    sizeBytes: Number(payload.bigU64()),
    mtimeNs: payload.bigU64(),
    uid: payload.u32(),
    gid: payload.u32(),
    inode: payload.bigU64(),
    links: payload.u32(),
  };
  payload.done();
  if (stat.mode > 0o7777) throw violation(`mode ${stat.mode}`);
  return stat;
}
