/** Errors of the daemon, back from what it answered. */

import { type ErrorCode, type ErrorDetails, errorRegistry, SallyportError } from '../protocol/errors.ts';

export interface WireError {
  readonly code: string;
  readonly message: string;
  readonly advice: string;
  readonly details?: ErrorDetails;
}

export function isWireError(value: unknown): value is { readonly error: WireError } {
  if (typeof value !== 'object' || value === null || !('error' in value)) return false;
  const { error } = value;
  return typeof error === 'object' && error !== null && 'code' in error && 'message' in error;
}

export function errorFromWire({ code, message, advice, details = {} }: WireError): SallyportError {
  if (isKnown(code)) return new SallyportError(code, message, { advice, details });
  return new SallyportError('internal', message, { advice, details: { ...details, code } });
}

const isKnown = (code: string): code is ErrorCode => Object.hasOwn(errorRegistry, code);
