/** What is wrong with what came from inside. Apart from the link, so that the codec of trees needs no link. */

import { SallyportError } from '../protocol/errors.ts';

export function violation(reason: string, cause?: unknown): SallyportError {
  return new SallyportError('porter_protocol', `the sandbox broke the protocol: ${reason}`, { cause });
}
