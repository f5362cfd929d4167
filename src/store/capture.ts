/** Head and tail of an exec's output, for whoever wants the result of a command and not all that it printed. */

import { open } from 'node:fs/promises';
import type { Channel } from '../porter/output-sink.ts';
import type { Captured } from '../sandboxes/ports.ts';
import { type LogView, readLog } from './exec-log-reader.ts';
import { indexFile, type Offsets, readRuns, type Segment } from './segment.ts';

type Wanted = Channel | 'output';

const endless = Number.POSITIVE_INFINITY;

/** `limitBytes` counts what the program printed, not the line between head and tail. */
export async function captureLog(view: LogView, wanted: Wanted, limitBytes: number): Promise<Captured> {
  const recent = view.recent()?.all(wanted);
  if (recent) return fromWhole(recent, limitBytes);
  const until = { ...view.stored };
  const totalBytes = wanted === 'output' ? until.stdout + until.stderr : until[wanted];
  const headBytes = totalBytes <= limitBytes ? limitBytes : Math.floor(limitBytes / 2);
  const begin = only(wanted, { stdout: 0, stderr: 0 });
  const head = await collectHead(view, begin, until, headBytes);
  if (head.length === totalBytes) return { data: head, truncated: false, totalBytes };
  const tailBytes = limitBytes - Math.min(headBytes, head.length);
  const tail = await collectTail(view, await tailStart(view, wanted, until, tailBytes), until, tailBytes);
  return joined(head, tail, totalBytes);
}

function fromWhole(data: Buffer, limitBytes: number): Captured {
  const totalBytes = data.length;
  if (totalBytes <= limitBytes) return { data, truncated: false, totalBytes };
  const headBytes = Math.floor(limitBytes / 2);
  const tail = data.subarray(totalBytes - (limitBytes - headBytes));
  return joined(data.subarray(0, headBytes), tail, totalBytes);
}

function joined(head: Buffer, tail: Buffer, totalBytes: number): Captured {
  const first = head.subarray(0, wholeCharacters(head));
  const last = tail.subarray(brokenCharacter(tail));
  const marker = `\n… ${totalBytes - first.length - last.length} bytes left out …\n`;
  return { data: Buffer.concat([first, Buffer.from(marker), last]), truncated: true, totalBytes };
}

/** A channel that is not wanted is one of which the reader has everything. */
function only(wanted: Wanted, from: Offsets): Offsets {
  return {
    stdout: wanted === 'stderr' ? endless : from.stdout,
    stderr: wanted === 'stdout' ? endless : from.stderr,
  };
}

/** From the start, until there is enough or a part is missing. */
async function collectHead(view: LogView, position: Offsets, until: Offsets, bytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let missing = bytes;
  const signal = new AbortController().signal;
  for await (const piece of readLog({ view, position, until, signal, moved: () => {} })) {
    if (missing === 0 || !('data' in piece)) break;
    const part = piece.data.subarray(0, missing);
    parts.push(part);
    missing -= part.length;
  }
  return Buffer.concat(parts);
}

/** To the end; only what has nothing missing after it. */
async function collectTail(view: LogView, position: Offsets, until: Offsets, bytes: number): Promise<Buffer> {
  let parts: Buffer[] = [];
  const signal = new AbortController().signal;
  for await (const piece of readLog({ view, position, until, signal, moved: () => {} })) {
    if ('data' in piece) parts.push(piece.data);
    else parts = [];
  }
  const tail = Buffer.concat(parts);
  return tail.subarray(Math.max(0, tail.length - bytes));
}

/** Where a reader begins to get the last bytes. */
async function tailStart(view: LogView, wanted: Wanted, until: Offsets, bytes: number): Promise<Offsets> {
  if (wanted !== 'output') {
    const from = Math.max(0, until[wanted] - bytes);
    return only(wanted, { stdout: from, stderr: from });
  }
  let after = 0;
  for (const segment of view.segments.toReversed()) {
    after += segment.bytes;
    if (after >= bytes) return offsetsWithin(view.folder, segment, after - bytes);
  }
  return { stdout: 0, stderr: 0 };
}

/** How much of each channel came before the given byte of a segment. */
async function offsetsWithin(folder: string, segment: Segment, bytes: number): Promise<Offsets> {
  const offsets = { ...segment.start };
  const index = await open(indexFile(folder, segment.number), 'r');
  try {
    let rest = bytes;
    for (const run of await readRuns(index, 0, segment.runs)) {
      const part = Math.min(rest, run.length);
      offsets[run.channel] += part;
      rest -= part;
    }
  } finally {
    await index.close();
  }
  return offsets;
}

/** How long it is without a UTF-8 character that is cut off at its end. */
function wholeCharacters(data: Buffer): number {
  for (let back = 1; back <= Math.min(3, data.length); back++) {
    const byte = data[data.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    return characterBytes(byte) > back ? data.length - back : data.length;
  }
  return data.length;
}

/** How many bytes at its start are the rest of a character that is cut off. */
function brokenCharacter(data: Buffer): number {
  let count = 0;
  while (count < Math.min(3, data.length) && ((data[count] ?? 0) & 0xc0) === 0x80) count++;
  return count;
}

function characterBytes(lead: number): number {
  if (lead >= 0xf0) return 4;
  if (lead >= 0xe0) return 3;
  return lead >= 0xc0 ? 2 : 1;
}
