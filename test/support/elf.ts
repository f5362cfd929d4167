/** What the head of an ELF program of 64 bits says about how it is loaded. */

import { readFileSync } from 'node:fs';

export interface ElfFacts {
  /** 2 is a program at a fixed address, 3 one that can be moved. */
  readonly type: number;
  readonly machine: 'amd64' | 'arm64' | 'other';
  readonly segments: ReadonlyArray<{ readonly kind: string; readonly access: string }>;
}

const machines: Readonly<Record<number, 'amd64' | 'arm64'>> = { 62: 'amd64', 183: 'arm64' };
const kinds: Readonly<Record<number, string>> = {
  1: 'load',
  2: 'dynamic',
  3: 'interpreter',
  7: 'thread-local',
  1685382481: 'stack',
};

export function readElf(path: string): ElfFacts {
  const bytes = readFileSync(path);
  if (bytes.toString('latin1', 0, 4) !== '\x7fELF' || bytes[4] !== 2)
    throw new Error(`${path} is not an ELF program of 64 bits`);
  const first = Number(bytes.readBigUInt64LE(32));
  const size = bytes.readUInt16LE(54);
  const segments = Array.from({ length: bytes.readUInt16LE(56) }, (_, index) => {
    const kind = bytes.readUInt32LE(first + index * size);
    const flags = bytes.readUInt32LE(first + index * size + 4);
    const access = `${flags & 4 ? 'r' : ''}${flags & 2 ? 'w' : ''}${flags & 1 ? 'x' : ''}`;
    return { kind: kinds[kind] ?? String(kind), access };
  });
  return { type: bytes.readUInt16LE(16), machine: machines[bytes.readUInt16LE(18)] ?? 'other', segments };
}
