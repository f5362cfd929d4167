/** Errors as the API tells them. Nothing but what the registry knows leaves the process: no stack, no foreign text. */

import { type ErrorCode, type ErrorKind, isSallyportError, SallyportError } from '../protocol/errors.ts';

const statusOfKind: Readonly<Record<ErrorKind, number>> = {
  invalid: 400,
  permission: 403,
  not_found: 404,
  conflict: 409,
  cancelled: 499,
  internal: 500,
  unsupported: 501,
  unavailable: 503,
  timeout: 504,
  exhausted: 507,
};

/** Where HTTP itself has a word for it. */
const statusOfCode: Partial<Record<ErrorCode, number>> = {
  unauthenticated: 401,
  method_unknown: 405,
  request_too_large: 413,
  request_type: 415,
};

export function statusOf(error: SallyportError): number {
  return statusOfCode[error.code] ?? statusOfKind[error.kind];
}

/** Whatever was thrown, as something that may be shown. */
export function presentable(error: unknown): SallyportError {
  if (isSallyportError(error)) return error;
  return new SallyportError('internal', 'the daemon failed in a way that it should not have', {
    cause: error,
  });
}

export function errorBody(error: SallyportError): { readonly error: object } {
  const { code, kind, message, advice, details } = error;
  return { error: { code, kind, message, advice, details } };
}
