/**
 * Several tasks, a few at a time. Each is done by a function that is handed in; what one does is no matter of the others: one that
 * fails stops none. When it is cancelled nothing new begins, and it waits until those that run have cleaned up after themselves.
 */

import { createHash } from 'node:crypto';
import { sanitizedName } from '../policy/names.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';

export interface Task {
  /** From 1, in the order of the list. */
  readonly number: number;
  readonly text: string;
  /** The same for the same text, and of no other task of the list. */
  readonly slug: string;
}

export interface TaskResult {
  readonly exitCode: number;
  /** Paths and commits, as whoever did it counts them. */
  readonly changes: number;
  readonly bytes: number;
  /** Where the work is now, in a few words. */
  readonly where?: string;
}

export interface TaskState {
  readonly task: Task;
  readonly state: 'waiting' | 'running' | 'done' | 'failed' | 'cancelled';
  /** What is done at the moment, or why it failed. */
  readonly word?: string;
  readonly startedMs?: number;
  readonly endedMs?: number;
  readonly result?: TaskResult;
}

export interface FanOut {
  readonly jobs: number;
  readonly runOne: (task: Task, help: TaskHelp) => Promise<TaskResult>;
  /** After each change, with all of them. */
  readonly onChange: (states: readonly TaskState[], changed: TaskState) => void;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

export interface TaskHelp {
  readonly signal: AbortSignal;
  readonly say: (word: string) => void;
}

export async function fanOut(tasks: readonly Task[], options: FanOut): Promise<readonly TaskState[]> {
  const { jobs, runOne, onChange, now, signal } = options;
  const states: TaskState[] = tasks.map((task) => ({ task, state: 'waiting' }));
  const change = (index: number, news: Partial<TaskState>): void => {
    const before = states[index];
    if (before === undefined) return;
    const after = { ...before, ...news };
    states[index] = after;
    onChange(states, after);
  };
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < tasks.length; index = next++) {
      const task = tasks[index];
      if (task === undefined) return;
      if (signal.aborted) {
        change(index, { state: 'cancelled', word: 'not begun' });
        continue;
      }
      change(index, { state: 'running', startedMs: now() });
      const say = (word: string): void => change(index, { word });
      try {
        const result = await runOne(task, { signal, say });
        change(index, { state: result.exitCode === 0 ? 'done' : 'failed', result, endedMs: now() });
      } catch (error) {
        // Whoever was cancelled has said what became of it.
        if (signal.aborted) change(index, { state: 'cancelled', endedMs: now() });
        else change(index, { state: 'failed', word: wordOf(error), endedMs: now() });
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(jobs, tasks.length) }, work));
  return states;
}

function wordOf(error: unknown): string {
  if (isSallyportError(error)) return `${error.message} (${error.code})`;
  return error instanceof Error ? error.message : String(error);
}

const mostTasks = 1000;
const longestSlug = 24;

/** One task a line; empty lines and those that begin with # are none. */
export function readTasks(content: string, file: string): readonly Task[] {
  const lines = content.split(/\r?\n/).map((line) => line.trim());
  const texts = lines.filter((line) => line !== '' && !line.startsWith('#'));
  const refuse = (why: string): SallyportError =>
    new SallyportError('usage', `--each ${file}: ${why}`, { advice: 'Give a file with one task a line.' });
  if (texts.length === 0) throw refuse('there is no task in it');
  if (texts.length > mostTasks) throw refuse(`there are ${texts.length} tasks, more than ${mostTasks}`);
  const seen = new Map<string, number>();
  return texts.map((text, index) => {
    if (text.includes('\0')) throw refuse(`task ${index + 1} has a NUL`);
    const count = (seen.get(text) ?? 0) + 1;
    seen.set(text, count);
    const hash = createHash('sha256').update(`${count}:${text}`).digest('hex').slice(0, 8);
    return { number: index + 1, text, slug: `${sanitizedName(text, longestSlug)}-${hash}` };
  });
}

/** A branch of its own for each task: the same one when the list is done again. */
export const taskBranch = (prefix: string, { slug }: Task): string => `${prefix}-${slug}`;

/** What a command is given of a task: in the place of a word `{}`, or as its last argument. Never as a part of another word. */
export function commandOf(command: readonly string[], { text }: Task): readonly string[] {
  const isPlaced = command.includes('{}');
  return isPlaced ? command.map((word) => (word === '{}' ? text : word)) : [...command, text];
}
