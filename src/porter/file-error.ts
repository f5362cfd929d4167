/** What an errno of a file operation inside the sandbox means to its caller. */

import { constants } from 'node:os';
import { type ErrorCode, SallyportError } from '../protocol/errors.ts';

export type SandboxPath = string | Uint8Array;

export interface FileSubject {
  readonly operation: string;
  readonly path: SandboxPath;
}

// The numbers are Linux's, whatever this process runs on.
const reasons: Readonly<Record<number, readonly [ErrorCode, string]>> = {
  1: ['file_denied', 'not permitted'],
  2: ['file_not_found', 'no such file or directory'],
  11: ['file_no_space', 'too many file operations, or no process left, in the sandbox'],
  12: ['file_no_space', 'no memory left in the sandbox'],
  13: ['file_denied', "the sandbox's user has no permission"],
  16: ['file_conflict', 'it is in use or changed meanwhile'],
  17: ['file_conflict', 'it exists already'],
  18: ['file_invalid', 'source and destination are on different file systems'],
  20: ['file_invalid', 'a part of the path is not a directory'],
  21: ['file_invalid', 'it is a directory'],
  22: ['file_invalid', 'not a regular file, or not a valid path or mode'],
  24: ['file_no_space', 'no descriptor left in the sandbox'],
  28: ['file_no_space', 'no space left in the sandbox'],
  30: ['file_denied', 'the file system is read-only'],
  36: ['file_invalid', 'the path is too long or too deep'],
  39: ['file_conflict', 'the directory is not empty'],
  40: ['file_invalid', 'a link is in the way, or links go round in circles'],
  122: ['file_no_space', 'a quota is used up'],
};

export const cancelledErrno = 125;

const nameOf = (errno: number): string =>
  Object.entries(constants.errno).find(([, value]) => value === errno)?.[0] ?? `errno ${errno}`;

/** `entry` is the path inside a tree at which it happened. */
export function fileError(subject: FileSubject, errno: number, entry: Buffer): SallyportError {
  const { operation } = subject;
  const path = showPath(subject.path);
  if (errno === cancelledErrno) return cancelledError(subject);
  const [code, reason] = reasons[errno] ?? ['file_failed', nameOf(errno)];
  const inside = entry.length === 0 ? '' : ` (at ${showPath(entry)})`;
  return new SallyportError(code, `${operation} ${path}${inside}: ${reason}`, {
    details: { errno, operation, path, ...(entry.length === 0 ? {} : { entry: showPath(entry) }) },
  });
}

export function cancelledError(subject: FileSubject, cause?: unknown): SallyportError {
  return new SallyportError('cancelled', `${subject.operation} ${showPath(subject.path)} was cancelled`, {
    cause,
  });
}

export function showPath(path: SandboxPath): string {
  return typeof path === 'string' ? path : Buffer.from(path).toString('utf8');
}
