/** Renders progress: one line that rewrites itself on a terminal, one line a step elsewhere, nothing when quiet. */

import pc from 'picocolors';
import type { Progress, ProgressEvent } from '../lib/progress.ts';
import { harmless } from './harmless.ts';

export interface ProgressLine {
  readonly report: Progress;
  /** Clears the line, so that the next output starts clean. */
  readonly done: () => void;
}

const redrawMs = 80;

export function progressLine(stream: NodeJS.WriteStream = process.stderr): ProgressLine {
  if (!stream.isTTY) return plainProgress(stream);
  let drawnAt = 0;
  let drawn = false;
  const report = (event: ProgressEvent): void => {
    const now = Date.now();
    if (now - drawnAt < redrawMs) return;
    drawnAt = now;
    drawn = true;
    const text = harmless(`${event.step}: ${event.message.replace(/\s+/g, ' ').trim()}`);
    stream.write(`\r\x1b[2K${pc.dim(text.slice(0, Math.max(20, (stream.columns ?? 80) - 1)))}`);
  };
  const done = (): void => {
    if (drawn) stream.write('\r\x1b[2K');
    drawn = false;
  };
  return { report, done };
}

function plainProgress(stream: NodeJS.WriteStream): ProgressLine {
  let last = '';
  const report = (event: ProgressEvent): void => {
    // A log wants what happens, not each percent of it.
    if (event.current !== undefined) return;
    const text = harmless(`sally: ${event.step}: ${event.message.trim()}`);
    if (text === last) return;
    last = text;
    stream.write(`${text}\n`);
  };
  return { report, done: () => {} };
}
