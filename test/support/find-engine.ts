/** A program for `runChild`: looks for an engine as this process's user and environment see it. */

import { readEngineEnvironment } from '../../src/engines/docker/config.ts';
import { findEngine } from '../../src/engines/docker/discover.ts';
import { SallyportError } from '../../src/protocol/errors.ts';

export interface FindResult {
  readonly source?: string;
  readonly code?: string;
  readonly message?: string;
  readonly advice?: string;
}

async function find(): Promise<FindResult> {
  try {
    return { source: (await findEngine(readEngineEnvironment())).source };
  } catch (error) {
    if (!(error instanceof SallyportError)) return { code: 'untyped', message: String(error) };
    return { code: error.code, message: error.message, advice: error.advice };
  }
}

process.stdout.write(JSON.stringify(await find()));
