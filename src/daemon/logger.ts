/** What the daemon says in its log. Never bodies, environments, tokens, or the arguments of a command. */

import { isSallyportError } from '../protocol/errors.ts';

export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  info(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export interface LogSink {
  write(level: 'info' | 'error', message: string, fields: LogFields): void;
}

export function logger(sink: LogSink): Logger {
  const write = (level: 'info' | 'error', message: string, fields: LogFields = {}): void => {
    const shown = Object.entries(fields).map(([key, value]) => [key, present(value)]);
    sink.write(level, message, Object.fromEntries(shown));
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
