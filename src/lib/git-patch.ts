/**
 * One changed path as a patch in git's format, which `git apply` takes. Names and contents are bytes. Pure, and in turns:
 * a large file takes a second, in which signals must be heard.
 */

import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { deflate } from 'node:zlib';
import { countLines, LineNumbers, lineEdits, splitLines, unifiedHunks } from './line-diff.ts';
import { Turns } from './turns.ts';

const deflated = promisify(deflate);

/** Of one side. Each line costs some hundred bytes of memory, also an empty one; what has more is not compared line by line. */
export const mostPatchLines = 250_000;

export interface PatchSide {
  readonly mode: '100644' | '100755' | '120000';
  /** Of a link its target. Undefined: not known, or too large. */
  readonly content: Buffer | undefined;
}

export interface FilePatch {
  readonly bytes: Buffer;
  readonly added: number;
  readonly removed: number;
  readonly isBinary: boolean;
  /** Without this content the patch only says that something changed. */
  readonly isWhole: boolean;
}

const isLink = ({ mode }: PatchSide): boolean => mode === '120000';

export async function filePatch(
  path: Buffer,
  before: PatchSide | undefined,
  after: PatchSide | undefined,
): Promise<FilePatch> {
  // Git has no change from a file to a link: one goes, the other comes.
  if (before !== undefined && after !== undefined && isLink(before) !== isLink(after))
    return joined(await filePatch(path, before, undefined), await filePatch(path, undefined, after));
  const names = { old: quoted('a/', path), new: quoted('b/', path) };
  const head = `diff --git ${names.old} ${names.new}\n${modeLines(before, after)}`;
  const [old, now] = [contentOf(before), contentOf(after)];
  const isBinary = [old, now].some((content) => content !== undefined && looksBinary(content));
  if (old === undefined || now === undefined || (!isBinary && [old, now].some(hasManyLines))) {
    const text = `${head}Binary files ${before ? names.old : '/dev/null'} and ${after ? names.new : '/dev/null'} differ\n`;
    return { bytes: Buffer.from(text), added: 0, removed: 0, isBinary: true, isWhole: false };
  }
  const hashes = [
    before === undefined ? noBlob : blobHash(old),
    after === undefined ? noBlob : blobHash(now),
  ];
  if (hashes[0] === hashes[1])
    return { bytes: Buffer.from(head), added: 0, removed: 0, isBinary: false, isWhole: true };
  const [from, to] = isBinary ? hashes : hashes.map((hash) => hash.slice(0, 10));
  const sameMode = before !== undefined && after !== undefined && before.mode === after.mode;
  const index = `index ${from}..${to}${sameMode ? ` ${after.mode}` : ''}\n`;
  const start = Buffer.from(`${head}${index}`);
  if (isBinary) {
    const bytes = Buffer.concat([start, await binaryBody(old, now)]);
    return { bytes, added: 0, removed: 0, isBinary, isWhole: true };
  }
  const { hunks, ...counts } = await textBody(old, now);
  const oldName = before === undefined ? '/dev/null' : named(names.old);
  const newName = after === undefined ? '/dev/null' : named(names.new);
  const files = hunks.length === 0 ? '' : `--- ${oldName}\n+++ ${newName}\n`;
  return { bytes: Buffer.concat([start, Buffer.from(files), hunks]), ...counts, isBinary, isWhole: true };
}

const hasManyLines = (content: Buffer): boolean => countLines(content, mostPatchLines) > mostPatchLines;

async function textBody(
  old: Buffer,
  now: Buffer,
): Promise<{ readonly hunks: Buffer; readonly added: number; readonly removed: number }> {
  const turns = new Turns();
  const lines = { old: splitLines(old), new: splitLines(now) };
  const numbers = new LineNumbers();
  await turns.take();
  const from = numbers.of(lines.old);
  await turns.take();
  const to = numbers.of(lines.new);
  await turns.take();
  const edits = lineEdits(from, to);
  await turns.take();
  return {
    hunks: unifiedHunks(lines.old, lines.new, edits),
    added: edits.reduce((sum, { newStart, newEnd }) => sum + newEnd - newStart, 0),
    removed: edits.reduce((sum, { oldStart, oldEnd }) => sum + oldEnd - oldStart, 0),
  };
}

/** Both contents as a whole. */
async function binaryBody(old: Buffer, now: Buffer): Promise<Buffer> {
  const end = Buffer.from('\n');
  return Buffer.concat([Buffer.from('GIT binary patch\n'), await literal(now), end, await literal(old), end]);
}

const joined = (a: FilePatch, b: FilePatch): FilePatch => ({
  bytes: Buffer.concat([a.bytes, b.bytes]),
  added: a.added + b.added,
  removed: a.removed + b.removed,
  isBinary: a.isBinary || b.isBinary,
  isWhole: a.isWhole && b.isWhole,
});

/** A side that is not there is empty. */
const contentOf = (side: PatchSide | undefined): Buffer | undefined =>
  side === undefined ? Buffer.alloc(0) : side.content;

function modeLines(before: PatchSide | undefined, after: PatchSide | undefined): string {
  if (before === undefined) return after === undefined ? '' : `new file mode ${after.mode}\n`;
  if (after === undefined) return `deleted file mode ${before.mode}\n`;
  return before.mode === after.mode ? '' : `old mode ${before.mode}\nnew mode ${after.mode}\n`;
}

const noBlob = '0'.repeat(40);

/** What git calls the content. */
export function blobHash(content: Buffer, algorithm: 'sha1' | 'sha256' = 'sha1'): string {
  return createHash(algorithm).update(`blob ${content.length}\0`).update(content).digest('hex');
}

const probedBytes = 8000;
/** Git's own rule. */
const looksBinary = (content: Buffer): boolean => content.subarray(0, probedBytes).includes(0);

/** A name with a space ends at a tab in these two lines. */
const named = (name: string): string => (name.includes(' ') && !name.startsWith('"') ? `${name}\t` : name);

const escapes: Readonly<Record<number, string>> = {
  7: '\\a',
  8: '\\b',
  9: '\\t',
  10: '\\n',
  11: '\\v',
  12: '\\f',
  13: '\\r',
  34: '\\"',
  92: '\\\\',
};

/** As git writes names: plain where all is plain, else in quotes with codes for whatever is not. */
export function quoted(prefix: string, path: Buffer): string {
  const words = Array.from(path, (byte) => {
    const known = escapes[byte];
    if (known !== undefined) return known;
    return byte < 0x20 || byte > 0x7e ? `\\${byte.toString(8).padStart(3, '0')}` : String.fromCharCode(byte);
  });
  const text = `${prefix}${words.join('')}`;
  return text.includes('\\') ? `"${text}"` : text;
}

const alphabet = Buffer.from(
  '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~',
);
const lineBytes = 52;

/** The whole content of a binary file: compressed, then five characters for four bytes, with each line's length before it. */
async function literal(content: Buffer): Promise<Buffer> {
  const packed = await deflated(content);
  const lines = Math.ceil(packed.length / lineBytes);
  const out = Buffer.allocUnsafe(Math.ceil(packed.length / 4) * 5 + lines * 2);
  let to = 0;
  for (let at = 0; at < packed.length; at += lineBytes) {
    const length = Math.min(lineBytes, packed.length - at);
    out[to++] = length <= 26 ? 64 + length : 70 + length;
    for (let from = at; from < at + length; from += 4, to += 5) writeFive(out, to, packed, from);
    out[to++] = 0x0a;
  }
  return Buffer.concat([Buffer.from(`literal ${content.length}\n`), out]);
}

/** Four bytes, or as many as there are, as five characters. */
function writeFive(out: Buffer, to: number, bytes: Buffer, from: number): void {
  let value = 0;
  for (let index = 0; index < 4; index++) value = value * 256 + (bytes[from + index] ?? 0);
  for (let index = 4; index >= 0; index--) {
    out[to + index] = alphabet[value % 85] ?? 0;
    value = Math.floor(value / 85);
  }
}
