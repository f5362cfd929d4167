/**
 * What is remembered of each path of a copied workspace: its mark, and the content of files within bounds. Marks are what a
 * change is measured by. Files are the same if git would say so: of a mode only the owner's x counts.
 */

import { contentHashPattern } from '../lib/content-hash.ts';
import type { PatternFile } from '../policy/copied-excludes.ts';
import type { BaselineWriter } from './ports.ts';
import type { Manifest } from './records.ts';

export type Mark =
  | {
      readonly kind: 'file';
      readonly mode: number;
      readonly sha256: string;
      readonly sizeBytes: number;
      /** Where its content is in the pack; absent: it is not kept. */
      readonly keptAt?: number;
    }
  /** One that was too large to compare. Never in a baseline. */
  | { readonly kind: 'large'; readonly mode: number; readonly sizeBytes: number }
  | { readonly kind: 'directory' }
  | { readonly kind: 'link'; readonly target: Buffer }
  /** Neither of these, or not to be read. Never in a baseline. */
  | { readonly kind: 'other' };

/** Larger files are known by their hash alone. */
export const mostKeptFileBytes = 8 * 2 ** 20;
/** Of one sandbox, with what was kept before it was replaced. */
export const mostKeptBytes = 512 * 2 ** 20;

/**
 * How much data one comparison reads at most. Holes do not count: they cost nobody anything. What does not fit is told as
 * not compared.
 */
export const mostCompared = { fileBytes: 4 * 2 ** 30, totalBytes: 16 * 2 ** 30 };
/** More changes than this are refused: the daemon keeps all of them in memory. */
export const mostChanges = 500_000;
/** The same in bytes of their paths and links: a program inside can make each of them 4 KB long. */
export const mostChangedBytes = 128 * 2 ** 20;

/** A line of its own for each would be read faster by people, but there are many: so it is short. */
export function writeMark(mark: Mark): string {
  switch (mark.kind) {
    case 'file':
      return `f ${mark.mode} ${mark.sha256} ${mark.sizeBytes} ${mark.keptAt ?? '-'}`;
    case 'directory':
      return 'd';
    case 'link':
      return `l ${mark.target.toString('base64')}`;
    case 'large':
    case 'other':
      return '?';
  }
}

export function readMark(text: string): Mark {
  const [kind, ...words] = text.split(' ');
  if (kind === 'd') return { kind: 'directory' };
  if (kind === 'l') return { kind: 'link', target: Buffer.from(words[0] ?? '', 'base64') };
  const [mode = '', sha256 = '', size = '0', at = '-'] = words;
  if (kind !== 'f' || !contentHashPattern.test(sha256)) return { kind: 'other' };
  const file = { kind: 'file' as const, mode: Number(mode), sha256, sizeBytes: Number(size) };
  return at === '-' ? file : { ...file, keptAt: Number(at) };
}

const ownerMayRun = 0o100;

export function isSame(a: Mark, b: Mark): boolean {
  if (a.kind === 'file' && b.kind === 'file')
    return a.sha256 === b.sha256 && (a.mode & ownerMayRun) === (b.mode & ownerMayRun);
  if (a.kind === 'link' && b.kind === 'link') return a.target.equals(b.target);
  return a.kind === 'directory' && b.kind === 'directory';
}

/** Names are bytes, and keys of JSON are not. */
export const keyOf = (path: Buffer): string => path.toString('base64');
export const pathOfKey = (key: string): Buffer => Buffer.from(key, 'base64');

type KeptPatternFile = Manifest['patternFiles'][number];

export const writePatternFile = ({ folder, name, content }: PatternFile): KeptPatternFile => ({
  folder: folder.toString('base64'),
  name,
  content: content.toString('base64'),
});

export const readPatternFile = ({ folder, name, content }: KeptPatternFile): PatternFile => ({
  folder: Buffer.from(folder, 'base64'),
  name,
  content: Buffer.from(content, 'base64'),
});

/** Where the content of a file of this size goes; undefined: it is too much to be kept. */
export function placeFor(pack: BaselineWriter, sizeBytes: number): number | undefined {
  const fits = sizeBytes <= mostKeptFileBytes && pack.bytes + sizeBytes <= mostKeptBytes;
  return fits ? pack.bytes : undefined;
}
