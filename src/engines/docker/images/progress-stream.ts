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
    if (line.error !== undefined) {
      const code = isDiskFull(line.error) ? 'disk_full' : failure;
      throw new SallyportError(code, `${what}: ${line.error.trim()}`);
    }
    yield line;
  }
}
