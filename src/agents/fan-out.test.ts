import { describe, expect, it } from 'vitest';
import { commandOf, type FanOut, fanOut, readTasks, type TaskState, taskBranch } from './fan-out.ts';

const tasks = readTasks('one\ntwo\n\n# not me\n  three  \nfour\n', 'tasks.txt');
const fine = { exitCode: 0, changes: 0, bytes: 0 };

const run = (given: Partial<FanOut>): Promise<readonly TaskState[]> =>
  fanOut(tasks, {
    jobs: 2,
    runOne: async () => fine,
    onChange: () => {},
    now: () => 0,
    signal: new AbortController().signal,
    ...given,
  });

describe('several tasks', () => {
  it('are the lines of a file, each with a branch of its own', () => {
    expect(tasks.map(({ text }) => text)).toEqual(['one', 'two', 'three', 'four']);
    const same = readTasks('Fix: the login!\nFix the login\nFix the login\n', 'x');
    const branches = same.map((task) => taskBranch('task', task));
    expect(new Set(branches).size).toBe(3);
    expect(branches[0]).toMatch(/^task-fix-the-login-[0-9a-f]{8}$/);
    expect(readTasks('Fix the login', 'x')[0]?.slug).toBe(same[1]?.slug);
    expect(() => readTasks('# nothing\n', 'x')).toThrow(/no task/);
  });

  it('give the command their text, where it says so or at its end', () => {
    const [task] = tasks;
    if (task === undefined) throw new Error('there is no task');
    expect(commandOf(['claude', '-p'], task)).toEqual(['claude', '-p', 'one']);
    expect(commandOf(['sh', '-c', 'echo {}', '{}'], task)).toEqual(['sh', '-c', 'echo {}', 'one']);
  });

  it('are done a few at a time, and all of them', async () => {
    let [running, most] = [0, 0];
    const states = await run({
      runOne: async () => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running--;
        return fine;
      },
    });
    expect(states.map(({ state }) => state)).toEqual(['done', 'done', 'done', 'done']);
    expect(most).toBe(2);
  });

  it('do not stop each other when one fails, by its exit or by an error', async () => {
    const states = await run({
      runOne: async ({ text }) => {
        if (text === 'one') throw new Error('no image');
        return { ...fine, exitCode: text === 'two' ? 3 : 0 };
      },
    });
    expect(states.map(({ state, word }) => [state, word])).toEqual([
      ['failed', 'no image'],
      ['failed', undefined],
      ['done', undefined],
      ['done', undefined],
    ]);
  });

  it('when cancelled begin nothing new, and wait for those that run', async () => {
    const cancel = new AbortController();
    let cleaned = 0;
    const states = await run({
      signal: cancel.signal,
      runOne: async ({ text }, { signal, say }) => {
        if (text === 'two') cancel.abort();
        if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
        await new Promise((resolve) => setImmediate(resolve));
        cleaned++;
        say('half done');
        throw new Error('cancelled');
      },
    });
    expect(states.map(({ state }) => state)).toEqual(['cancelled', 'cancelled', 'cancelled', 'cancelled']);
    expect(states.map(({ word }) => word)).toEqual(['half done', 'half done', 'not begun', 'not begun']);
    expect(cleaned).toBe(2);
  });
});
