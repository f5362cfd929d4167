/** One changed path as a patch in git's format, which `git apply` takes. Names and contents are bytes. Pure. */

import { createHash } from 'node:crypto';
import { deflateSync } from 'node:zlib';
import { lineEdits, splitLines, unifiedHunks } from './line-diff.ts';

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

export function filePatch(
  path: Buffer,
  before: PatchSide | undefined,
  after: PatchSide | undefined,
): FilePatch {
  // Git has no change from a file to a link: one goes, the other comes.
  if (before !== undefined && after !== undefined && isLink(before) !== isLink(after))
    return joined(filePatch(path, before, undefined), filePatch(path, undefined, after));
  const names = { old: quoted('a/', path), new: quoted('b/', path) };
  const head = `diff --git ${names.old} ${names.new}\n${modeLines(before, after)}`;
  const [old, now] = [contentOf(before), contentOf(after)];
  if (old === undefined || now === undefined) {
    const text = `${head}Binary files ${before ? names.old : '/dev/null'} and ${after ? names.new : '/dev/null'} differ\n`;
    return { bytes: Buffer.from(text), added: 0, removed: 0, isBinary: true, isWhole: false };
  }
  const isBinary = looksBinary(old) || looksBinary(now);
  const hashes = [
    before === undefined ? noBlob : blobHash(old),
    after === undefined ? noBlob : blobHash(now),
  ];
  if (hashes[0] === hashes[1])
    return { bytes: Buffer.from(head), added: 0, removed: 0, isBinary: false, isWhole: true };
  const [from, to] = isBinary ? hashes : hashes.map((hash) => hash.slice(0, 10));
  const sameMode = before !== undefined && after !== undefined && before.mode === after.mode;
  const index = `index ${from}..${to}${sameMode ? ` ${after.mode}` : ''}\n`;
  if (isBinary) {
    const body = `GIT binary patch\n${literal(now)}\n${literal(old)}\n`;
    return { bytes: Buffer.from(`${head}${index}${body}`), added: 0, removed: 0, isBinary, isWhole: true };
  }
  const lines = { old: splitLines(old), new: splitLines(now) };
  const edits = lineEdits(lines.old, lines.new);
  const oldName = before === undefined ? '/dev/null' : named(names.old);
  const newName = after === undefined ? '/dev/null' : named(names.new);
  const hunks = unifiedHunks(lines.old, lines.new, edits);
  const files = hunks.length === 0 ? '' : `--- ${oldName}\n+++ ${newName}\n`;
  return {
    bytes: Buffer.concat([Buffer.from(`${head}${index}${files}`), hunks]),
    added: edits.reduce((sum, { newStart, newEnd }) => sum + newEnd - newStart, 0),
    removed: edits.reduce((sum, { oldStart, oldEnd }) => sum + oldEnd - oldStart, 0),
    isBinary,
    isWhole: true,
  };
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

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~';
const lineBytes = 52;

/** The whole content of a binary file: compressed, then five characters for four bytes, with each line's length before it. */
function literal(content: Buffer): string {
  const packed = deflateSync(content);
  const lines = [`literal ${content.length}\n`];
  for (let at = 0; at < packed.length; at += lineBytes) {
    const line = packed.subarray(at, at + lineBytes);
    const length = String.fromCharCode(line.length <= 26 ? 64 + line.length : 70 + line.length);
    const groups: string[] = [];
    for (let from = 0; from < line.length; from += 4)
      groups.push(fiveCharacters(line.subarray(from, from + 4)));
    lines.push(`${length}${groups.join('')}\n`);
  }
  return lines.join('');
}

function fiveCharacters(bytes: Buffer): string {
  let value = 0;
  for (let index = 0; index < 4; index++) value = value * 256 + (bytes[index] ?? 0);
  let text = '';
  for (let index = 0; index < 5; index++) {
    text = (alphabet[value % 85] ?? '') + text;
    value = Math.floor(value / 85);
  }
  return text;
}
