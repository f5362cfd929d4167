/** Starts processes of shared-writer.ts. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, onTestFinished } from 'vitest';
import type { WriterPlan } from './shared-writer.ts';

export interface Writer {
  readonly pid: number | undefined;
  go(): void;
  /** The next line that it says. */
  said(): Promise<string>;
  /** All lines that it says until it ends; it is killed after `killAfter` of them. */
  lines(killAfter?: number): Promise<readonly string[]>;
  kill(): Promise<void>;
}

/** They wait for `go`. */
export async function startWriters(
  program: string,
  plans: readonly WriterPlan[],
): Promise<readonly Writer[]> {
  return await Promise.all(plans.map((plan) => startWriter(program, plan)));
}

async function startWriter(program: string, plan: WriterPlan): Promise<Writer> {
  const child = spawn(process.execPath, [program, JSON.stringify(plan)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.on('error', () => {});
  const exit = once(child, 'exit');
  const output = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const said = async (): Promise<string> => (await output.next()).value ?? 'nothing';
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exit;
  };
  onTestFinished(kill);
  expect(await said()).toBe('ready');
  return {
    pid: child.pid,
    go: () => child.stdin.write('go\n'),
    said,
    lines: async (killAfter) => {
      const lines: string[] = [];
      for (let next = await output.next(); next.done !== true; next = await output.next()) {
        if (lines.push(next.value) === killAfter) child.kill('SIGKILL');
      }
      expect(await exit).toEqual(killAfter === undefined ? [0, null] : [null, 'SIGKILL']);
      return lines;
    },
    kill,
  };
}
