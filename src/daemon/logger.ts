/** The daemon's log: one JSON object a line. Never bodies, environments, tokens, or the arguments of a command. */

import { isSallyportError } from '../protocol/errors.ts';

export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  info(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export interface LogFile {
  write(line: string): void;
}

export function jsonLogger(file: LogFile, now: () => Date = () => new Date()): Logger {
  const write = (level: string, message: string, fields: LogFields = {}): void => {
    const shown = Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, present(value)]));
    file.write(`${JSON.stringify({ at: now().toISOString(), level, message, ...shown })}\n`);
  };
  return {
    info: (message, fields) => write('info', message, fields),
    error: (message, fields) => write('error', message, fields),
  };
}

const mostCauses = 5;

function present(value: unknown, depth = 0): unknown {
  if (!(value instanceof Error)) return value;
  const cause =
    value.cause === undefined || depth >= mostCauses ? {} : { cause: present(value.cause, depth + 1) };
  if (isSallyportError(value)) {
    return { code: value.code, message: value.message, details: value.details, ...cause };
  }
  return { message: value.message, stack: value.stack, ...cause };
}
