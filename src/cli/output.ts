/** What people and scripts see: results on stdout, everything else on stderr, every message with the same prefix. */

import pc from 'picocolors';
import { isSallyportError } from '../protocol/errors.ts';

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2));
}

export function note(text: string): void {
  process.stderr.write(`sally: ${text}\n`);
}

/** What failed, then what to do: at most three lines, whatever the error was. */
export function describeError(error: unknown): string {
  if (!isSallyportError(error)) {
    const message = error instanceof Error ? error.message : String(error);
    return `sally: ${pc.red('internal error')}: ${message}\nsally: this is a bug in Sallyport; SALLYPORT_DEBUG=1 shows where`;
  }
  return `sally: ${error.message}\nsally: ${error.advice}`;
}

export function printError(
  error: unknown,
  options: { readonly json: boolean; readonly debug: boolean },
): void {
  if (options.json && isSallyportError(error)) {
    const { code, kind, message, advice, details } = error;
    process.stdout.write(`${JSON.stringify({ error: { code, kind, message, advice, details } }, null, 2)}\n`);
  }
  process.stderr.write(`${describeError(error)}\n`);
  if (options.debug && error instanceof Error) process.stderr.write(`${causeChain(error)}\n`);
}

function causeChain(error: Error): string {
  const stack = error.stack ?? error.message;
  return error.cause instanceof Error ? `${stack}\ncaused by: ${causeChain(error.cause)}` : stack;
}
