/** Data of a file operation on its way: what the caller gives goes in, a page of a directory comes out. */

import type { FileStream } from './file-stream.ts';
import { violation } from './link.ts';
import { RecordDecoder } from './record-decoder.ts';
import { type FileKind, readKind } from './stat-record.ts';

export interface DirectoryEntry {
  readonly kind: FileKind;
  /** Any bytes but `/` and NUL. */
  readonly name: Buffer;
}

const notNames: ReadonlySet<string> = new Set(['', '.', '..']);

function isName(bytes: Buffer): boolean {
  return !bytes.includes('/') && !bytes.includes(0) && !notNames.has(bytes.toString('latin1'));
}

export const pageEntries = 1024;
const maxNameBytes = 255;

export function refuse(reason: string): never {
  throw violation(reason);
}

/** `after`: the last name of the page before. Names come in the order of their bytes, so that a listing goes on and has an end. */
export async function readPage(stream: FileStream, after: Buffer): Promise<readonly DirectoryEntry[]> {
  const decoder = new RecordDecoder(maxNameBytes);
  const page: DirectoryEntry[] = [];
  let last = after;
  for await (const chunk of stream.data()) {
    stream.trust(() => {
      for (const { kind, bytes } of decoder.push(chunk)) {
        if (!isName(bytes)) refuse('a name that is none');
        if (Buffer.compare(bytes, last) <= 0) refuse('a listing in no order');
        last = bytes;
        if (page.push({ kind: readKind(kind), name: bytes }) > pageEntries) refuse('a page that is too long');
      }
    });
  }
  stream.trust(() => decoder.end());
  return page;
}

/** What comes from the caller may fail as well: then nothing half-written takes the file's place. */
export async function feed(
  stream: FileStream,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  try {
    for await (const chunk of chunks) {
      const { buffer, byteOffset, byteLength } = chunk;
      if (!(await stream.input.write(Buffer.from(buffer, byteOffset, byteLength)))) return;
    }
    stream.input.end();
  } catch (error) {
    stream.cancel(error);
    throw error;
  }
}
