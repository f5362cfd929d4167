/** The daemon's own log: a line of JSON each, for people. No secrets and no bodies; what programs rely on are events. */

import { dirname } from 'node:path';
import { RotatingFile, type Rotation } from './rotating-file.ts';
import { provideFolder } from './state-folder.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface LogFile {
  /** Never throws: a full disk must not stop the daemon for the sake of its log. */
  write(level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>): void;
  close(): void;
}

const rotation: Rotation = { maxBytes: 5 * 2 ** 20, keep: 3 };

export function openLogFile(path: string, limits: Rotation = rotation): LogFile {
  provideFolder(dirname(path));
  const file = new RotatingFile(path, limits);
  let missing = 0;
  return {
    write: (level, message, fields = {}) => {
      try {
        const lost = missing === 0 ? {} : { lines_lost_before: missing };
        file.append(logLine(level, message, { ...fields, ...lost }));
        missing = 0;
      } catch {
        missing++;
      }
    },
    close: () => file.close(),
  };
}

function logLine(level: LogLevel, message: string, fields: Readonly<Record<string, unknown>>): string {
  const time = new Date().toISOString();
  return JSON.stringify({ ...fields, level, time, message }, (_key, value: unknown) =>
    value instanceof Error ? (value.stack ?? value.message) : value,
  );
}
