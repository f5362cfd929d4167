/** Several tasks as they go: a table that rewrites itself on a terminal, a line for each end elsewhere; a summary at the end. */

import type { TaskState } from '../agents/fan-out.ts';
import { formatSize } from '../lib/sizes.ts';
import { note, noteRow, redrawLines, terminalSize } from './output.ts';
import { printable, table } from './table.ts';

export interface FanOutView {
  readonly changed: (states: readonly TaskState[], state: TaskState) => void;
  /** Beside the table, which does not take it back. */
  readonly aside: (text: string) => void;
  /** The last word; a live table is replaced by it. */
  readonly done: (states: readonly TaskState[]) => void;
}

const redrawMs = 100;
/** So that the times go on where nothing else does. */
const tickMs = 1000;
const longestTask = 40;

export function fanOutView(): FanOutView {
  const done = (states: readonly TaskState[]): void => {
    for (const line of rowsOf(states, performance.now())) noteRow(line);
    const count = (wanted: TaskState['state']): number =>
      states.filter(({ state }) => state === wanted).length;
    note(`${count('done')} done, ${count('failed')} failed, ${count('cancelled')} cancelled`);
  };
  if (terminalSize() === undefined) return { changed: (_, state) => sayPlainly(state), aside: note, done };
  return liveTable(done);
}

function liveTable(done: FanOutView['done']): FanOutView {
  let lines = 0;
  let drawnAt = Number.NEGATIVE_INFINITY;
  let next: NodeJS.Timeout | undefined;
  let shownLast: readonly TaskState[] = [];
  const clear = (): void => {
    clearTimeout(next);
    next = undefined;
    redrawLines([], lines);
    lines = 0;
  };
  const draw = (states: readonly TaskState[]): void => {
    clear();
    shownLast = states;
    drawnAt = performance.now();
    // What does not fit could not be taken back: what runs comes first.
    const most = Math.max(3, (terminalSize()?.rows ?? 24) - 2);
    const shown = rowsOf([...states].sort(byInterest), drawnAt).slice(0, most);
    redrawLines(shown, 0);
    lines = shown.length;
    next = setTimeout(() => draw(states), tickMs);
  };
  return {
    changed: (states) => {
      const waitMs = drawnAt + redrawMs - performance.now();
      clearTimeout(next);
      // The last of several changes is shown as well: it may be long until the next one.
      if (waitMs > 0) next = setTimeout(() => draw(states), waitMs);
      else draw(states);
    },
    aside: (text) => {
      clear();
      note(text);
      draw(shownLast);
    },
    done: (states) => {
      clear();
      done(states);
    },
  };
}

const interest = { running: 0, failed: 1, waiting: 2, done: 3, cancelled: 4 } as const;
const byInterest = (a: TaskState, b: TaskState): number =>
  interest[a.state] - interest[b.state] || a.task.number - b.task.number;

function sayPlainly({ task, state, word, result }: TaskState): void {
  const name = `task ${task.number} (${shortTask(task.text)})`;
  if (state === 'running') note(`${name}: ${printable(word ?? 'begins')}`);
  if (state === 'done' || state === 'failed') {
    const how = result === undefined ? (word ?? 'it failed') : `exit code ${result.exitCode}`;
    note(`${name} ended: ${printable(how)}`);
  }
}

function rowsOf(states: readonly TaskState[], nowMs: number): readonly string[] {
  const rows = states.map(({ task, state, word, result, startedMs, endedMs }) => [
    String(task.number),
    shortTask(task.text),
    state,
    result === undefined ? '-' : String(result.exitCode),
    result === undefined ? '-' : String(result.changes),
    startedMs === undefined ? '-' : `${(((endedMs ?? nowMs) - startedMs) / 1000).toFixed(1)}s`,
    result === undefined ? '-' : formatSize(result.bytes),
    result?.where ?? word ?? '',
  ]);
  return table(['#', 'TASK', 'STATE', 'EXIT', 'CHANGES', 'TIME', 'BYTES', 'WHERE'], rows);
}

const shortTask = (text: string): string =>
  printable(text.length > longestTask ? `${text.slice(0, longestTask - 1)}…` : text);

export function fanOutJson(states: readonly TaskState[]): readonly Record<string, unknown>[] {
  return states.map(({ task, state, word, result, startedMs, endedMs }) => ({
    number: task.number,
    task: task.text,
    state,
    ...(result === undefined
      ? {}
      : { exit_code: result.exitCode, changes: result.changes, bytes: result.bytes, where: result.where }),
    ...(startedMs === undefined || endedMs === undefined
      ? {}
      : { duration_ms: Math.round(endedMs - startedMs) }),
    ...(result === undefined && word !== undefined ? { error: word } : {}),
  }));
}
