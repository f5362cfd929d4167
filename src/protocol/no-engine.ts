/** The errors after which no engine is there that could hold a sandbox. An engine that is there and broken is reported as it is. */

import type { ErrorCode } from './errors.ts';

export const noEngine: ReadonlySet<ErrorCode> = new Set([
  'engine_unreachable',
  'engine_start_failed',
  'setup_impossible',
]);
