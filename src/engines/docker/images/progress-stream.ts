/** What pull, build and import have in common: a stream of JSON progress in which a failure is a line, not a status. */

import type { Readable } from 'node:stream';
import { type ErrorCode, isSallyportError, SallyportError } from '../../../protocol/errors.ts';
import { isDiskFull } from '../wire/errors.ts';
import { jsonLines } from '../wire/json-lines.ts';

export interface ProgressLine {
  readonly id?: string;
  readonly status?: string;
  readonly stream?: string;
  readonly error?: string;
  readonly aux?: { readonly ID?: string };
  readonly progressDetail?: { readonly current?: number; readonly total?: number };
}

/** These have no code of their own in the engine either; the words are those of its source. */
function codeOf(message: string, failure: ErrorCode): ErrorCode {
  if (isDiskFull(message)) return 'disk_full';
  return failure === 'image_build_failed' && isCacheChanged(message) ? 'build_cache_changed' : failure;
}

/**
 * The classic builder looks through the children of an image for one that it can use, and through their parents: one that was
 * removed since it made the list is an error. It names ids alone; a name that somebody wrote is another matter.
 */
export function isCacheChanged(message: string): boolean {
  return /\b(unable to find image|no such image:?|unknown parent image ID:?|failed to get digest) "?sha256:[0-9a-f]{64}\b/i.test(
    message,
  );
}

/** Some failures come before the stream begins, as a plain error of the engine; they mean the same as the line would. */
export function beforeStream(what: string, failure: ErrorCode): (error: unknown) => never {
  return (error) => {
    if (!isSallyportError(error, 'engine_failed') && !isSallyportError(error, failure)) throw error;
    throw new SallyportError(failure, `${what}: ${error.message}`, { cause: error, details: error.details });
  };
}

export async function* progressLines(
  stream: Readable,
  what: string,
  failure: ErrorCode,
): AsyncGenerator<ProgressLine> {
  for await (const line of jsonLines<ProgressLine>(stream)) {
    if (line.error !== undefined)
      throw new SallyportError(codeOf(line.error, failure), `${what}: ${line.error.trim()}`);
    yield line;
  }
}
