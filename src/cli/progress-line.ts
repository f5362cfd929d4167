/** Renders progress: one line that rewrites itself on a terminal, one line a step elsewhere, nothing when quiet. */

import type { Progress, ProgressEvent } from '../lib/progress.ts';
import { note, redrawLine, terminalSize } from './output.ts';

export interface ProgressLine {
  readonly report: Progress;
  /** Clears the line, so that the next output starts clean. */
  readonly done: () => void;
}

const redrawMs = 80;

export function progressLine(): ProgressLine {
  if (terminalSize() === undefined) return plainProgress();
  let drawnAt = 0;
  let drawn = false;
  const report = (event: ProgressEvent): void => {
    const now = Date.now();
    if (now - drawnAt < redrawMs) return;
    drawnAt = now;
    drawn = true;
    redrawLine(`${event.step}: ${event.message.replace(/\s+/g, ' ').trim()}`);
  };
  const done = (): void => {
    if (drawn) redrawLine('');
    drawn = false;
  };
  return { report, done };
}

function plainProgress(): ProgressLine {
  let last = '';
  const report = (event: ProgressEvent): void => {
    // A log wants what happens, not each percent of it.
    if (event.current !== undefined) return;
    const text = `${event.step}: ${event.message.trim()}`;
    if (text === last) return;
    last = text;
    note(text);
  };
  return { report, done: () => {} };
}
