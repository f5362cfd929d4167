/** The log of an exec as plain bytes. Where a stretch is no longer kept, a line says how much is left out. */

import type { Channel } from '../porter/output-sink.ts';
import type { ExecLog, LogPiece, LogReadOptions } from '../sandboxes/ports.ts';

export interface RawLogOptions {
  readonly stream: Channel | 'output';
  readonly follow: boolean;
  /** Bytes from the end of what is there now. */
  readonly tail?: number;
  readonly signal: AbortSignal;
}

export async function* readRawLog(log: ExecLog, options: RawLogOptions): AsyncGenerator<Buffer> {
  const { stream, follow, tail, signal } = options;
  const stored = { ...log.stored };
  const from = tail === undefined ? undefined : tailOffsets(stored, tail);
  const reading: LogReadOptions = { signal, ...(from === undefined ? {} : { from }) };
  let skip = 0;
  if (tail !== undefined) {
    // Both channels reach back by `tail`; of the two together only the last `tail` are wanted.
    skip = Math.max(0, (await countKept(log, reading, stream, stored)) - tail);
  }
  for await (const piece of log.read({ ...reading, follow })) {
    if (stream !== 'output' && piece.channel !== stream) continue;
    const data = bytesOf(piece);
    if (skip >= data.length) {
      skip -= data.length;
      continue;
    }
    yield data.subarray(skip);
    skip = 0;
  }
}

function tailOffsets(stored: Readonly<Record<Channel, number>>, tail: number): Record<Channel, number> {
  return { stdout: Math.max(0, stored.stdout - tail), stderr: Math.max(0, stored.stderr - tail) };
}

async function countKept(
  log: ExecLog,
  reading: LogReadOptions,
  stream: Channel | 'output',
  stored: Readonly<Record<Channel, number>>,
): Promise<number> {
  let bytes = 0;
  for await (const piece of log.read(reading)) {
    if (stream !== 'output' && piece.channel !== stream) continue;
    // What came after the start belongs to the tail whatever its size.
    if (piece.offset < stored[piece.channel]) bytes += bytesOf(piece).length;
  }
  return bytes;
}

function bytesOf(piece: LogPiece): Buffer {
  if ('data' in piece) return piece.data;
  return Buffer.from(`\n[${piece.droppedBytes} bytes of ${piece.channel} are no longer kept]\n`);
}
