/**
 * How lines of the audit log hold together: each has a number and the SHA-256 of the whole line before it, and the head,
 * which is kept apart from them, has number and hash of the last, or of one of the last: it follows within moments. So an
 * edit, a removed line, a removed file and a cut at either end are seen. Whoever may write all of it can make a new chain:
 * `sally audit verify` prints number and hash of the last line, to be noted elsewhere.
 */

import { hash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { errno, stateFailure } from './state-failure.ts';
import { fileMode } from './state-folder.ts';

/** What the first line has as the hash of the one before. */
export const genesis = '0'.repeat(64);

export interface Link {
  readonly n: number;
  readonly prev: string;
}

export interface Head {
  readonly n: number;
  readonly hash: string;
  /** The oldest line that is kept; older ones were dropped by rotation. */
  readonly first: number;
}

export const auditFolder = (stateDir: string): string => join(stateDir, 'audit');
export const auditPath = (stateDir: string): string => join(auditFolder(stateDir), 'audit.jsonl');
/** Held by the process that writes to the log, for the length of one line. */
export const auditLockPath = (stateDir: string): string => join(stateDir, 'audit.lock');
/** Beside the folder: it is not removed with it. */
export const headPath = (stateDir: string): string => join(stateDir, 'audit-head');

export const hashLine = (line: string): string => hash('sha256', line);

/** Undefined: no line of a chain. */
export function readLink(line: string): Link | undefined {
  const match = /^\{"n":(\d{1,15}),"prev":"([0-9a-f]{64})",/.exec(line);
  return match === null ? undefined : { n: Number(match[1]), prev: match[2] ?? '' };
}

const width = 15;
const headPattern = /^(\d{15}) ([0-9a-f]{64}) (\d{15})\n$/;

function encodeHead({ n, hash, first }: Head): string {
  const digits = (value: number): string => String(value).padStart(width, '0');
  return `${digits(n)} ${hash} ${digits(first)}\n`;
}

/** Undefined: there is none, or nothing that could be one. */
export function readHead(path: string): Head | undefined {
  try {
    const match = headPattern.exec(readFileSync(path, 'utf8'));
    return match === null
      ? undefined
      : { n: Number(match[1]), hash: match[2] ?? '', first: Number(match[3]) };
  } catch (cause) {
    if (errno(cause) === 'ENOENT') return undefined;
    throw stateFailure('reading the head of the audit log', path, cause);
  }
}

/** Always of one length and written over in place by one call: after a crash it is the old one or the new one. */
export function writeHead(path: string, head: Head): void {
  try {
    const fd = openSync(path, constants.O_WRONLY | constants.O_CREAT, fileMode);
    try {
      writeSync(fd, encodeHead(head), 0);
    } finally {
      closeSync(fd);
    }
  } catch (cause) {
    throw stateFailure('writing the head of the audit log', path, cause);
  }
}

const blockBytes = 64 * 1024;
const newline = 0x0a;

/** The last whole line of a file; undefined if there is none. */
export function lastLine(path: string): string | undefined {
  return readEnd(path, (fd) => {
    const { size } = fstatSync(fd);
    for (let bytes = Math.min(size, blockBytes); bytes > 0; bytes = Math.min(size, bytes * 2)) {
      const block = Buffer.alloc(bytes);
      readSync(fd, block, 0, bytes, size - bytes);
      const end = block.lastIndexOf(newline);
      const before = end <= 0 ? -1 : block.lastIndexOf(newline, end - 1);
      if (before >= 0 || (bytes === size && end >= 0)) return block.toString('utf8', before + 1, end);
      if (bytes === size) return undefined;
    }
    return undefined;
  });
}

/** Without what a crash left of the last one. */
export function wholeLines(path: string): readonly string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').slice(0, -1);
  } catch (cause) {
    if (errno(cause) === 'ENOENT') return [];
    throw stateFailure('reading the audit log', path, cause);
  }
}

/** The number of a file's first line; only its start is read. */
export function firstNumber(path: string): number | undefined {
  return readEnd(path, (fd) => {
    const block = Buffer.alloc(200);
    return readLink(block.toString('utf8', 0, readSync(fd, block, 0, block.length, 0)))?.n;
  });
}

function readEnd<T>(path: string, read: (fd: number) => T): T | undefined {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch (cause) {
    if (errno(cause) === 'ENOENT') return undefined;
    throw stateFailure('reading the audit log', path, cause);
  }
  try {
    return read(fd);
  } finally {
    closeSync(fd);
  }
}
