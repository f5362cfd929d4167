/** Tools that run commands. A command that fails is a result, not an error; cancelling the call kills it and nothing else. */

import { z } from 'zod';
import type { ExecOutcome } from '../../sdk/outcome.ts';
import type { ExecOptions, Sandbox } from '../../sdk/sandbox.ts';
import { shown } from '../shown-text.ts';
import { type Answer, tool } from '../tool.ts';
import { sandboxName } from './common.ts';

const usualOutput = 16_000;
const mostOutput = 200_000;
const usualWaitMs = 30_000;
const mostWaitMs = 600_000;

const execResult = z.object({
  exec: z.string(),
  state: z.enum(['running', 'ended']),
  exit_code: z.number().optional(),
  signal: z.string().optional(),
  stdout: z.string(),
  stderr: z.string(),
  truncated: z.boolean(),
  timed_out: z.boolean(),
  oom_killed: z.boolean(),
  duration_ms: z.number(),
});
type ExecResult = z.input<typeof execResult>;

const outputLimit = z
  .number()
  .int()
  .min(200)
  .max(mostOutput)
  .default(usualOutput)
  .describe('characters of each stream; head and tail are kept');

function resultOf(outcome: ExecOutcome, most: number): Answer<ExecResult> {
  const stdout = shown(outcome.stdout, most);
  const stderr = shown(outcome.stderr, most);
  const data: ExecResult = {
    exec: outcome.id,
    state: 'ended',
    ...(outcome.exitCode === undefined ? {} : { exit_code: outcome.exitCode }),
    ...(outcome.signal === undefined ? {} : { signal: outcome.signal }),
    stdout: stdout.text,
    stderr: stderr.text,
    truncated: outcome.truncated || stdout.truncated || stderr.truncated,
    timed_out: outcome.timedOut,
    oom_killed: outcome.oomKilled,
    duration_ms: outcome.durationMs,
  };
  return { data, text: textOf(data) };
}

function textOf(data: ExecResult): string {
  const why = data.timed_out ? ', at its time limit' : data.oom_killed ? ', out of memory' : '';
  const how = data.signal === undefined ? `exit code ${data.exit_code}` : `ended by ${data.signal}`;
  const stderr = data.stderr === '' ? '' : `\n[stderr]\n${data.stderr}`;
  return `${data.stdout}${stderr}\n[${how}${why}]`;
}

function stillRunning(exec: string, tail: string): Answer<ExecResult> {
  const data: ExecResult = {
    exec,
    state: 'running',
    stdout: tail,
    stderr: '',
    truncated: false,
    timed_out: false,
    oom_killed: false,
    duration_ms: 0,
  };
  return { data, text: `${tail}\n[command ${exec} runs; \`wait\` for it or \`kill\` it]` };
}

/** With somebody to tell it to, the last line of output is told while it runs. */
async function runTold(
  box: Sandbox,
  argv: readonly string[],
  options: ExecOptions,
  progress: (message: string) => void,
): Promise<ExecOutcome> {
  const { input: _, check: __, ...fields } = options;
  await using running = await box.spawn(argv, fields);
  const follow = async (channel: AsyncIterable<Uint8Array>): Promise<void> => {
    for await (const chunk of channel) {
      const line = Buffer.from(chunk).toString('utf8').trimEnd().split('\n').at(-1);
      if (line) progress(line.slice(-200));
    }
  };
  await Promise.all([follow(running.stdout), follow(running.stderr)]);
  return await running.wait();
}

export const commandTools = [
  tool({
    name: 'run',
    title: 'Run a command',
    description:
      'Run a shell command in the sandbox. A non-zero exit code is a normal result. With background it returns at once with an id for wait, logs and kill.',
    input: z.object({
      command: z.string().min(1).describe('a line for /bin/sh'),
      sandbox: sandboxName,
      cwd: z.string().optional(),
      env: z.record(z.string(), z.string()).optional(),
      stdin: z.string().optional(),
      timeout_ms: z.number().int().positive().max(86_400_000).optional().describe('default 300000'),
      background: z.boolean().default(false),
      max_output: outputLimit,
    }),
    output: execResult,
    work: async ({ input, boxes, signal, progress }) => {
      const box = await boxes.get(input.sandbox);
      const argv = ['/bin/sh', '-c', input.command];
      const fields = {
        ...(input.cwd === undefined ? {} : { cwd: input.cwd }),
        ...(input.env === undefined ? {} : { envs: input.env }),
        ...(input.timeout_ms === undefined ? {} : { timeoutMs: input.timeout_ms }),
      };
      if (input.background) {
        const started = await box.spawn(argv, { ...fields, background: true });
        started.disconnect();
        return stillRunning(started.id, '');
      }
      const options = {
        ...fields,
        signal,
        ...(input.stdin === undefined ? {} : { input: input.stdin }),
      };
      const outcome =
        progress === undefined || input.stdin !== undefined
          ? await box.exec(argv, options)
          : await runTold(box, argv, options, progress);
      return resultOf(outcome, input.max_output);
    },
  }),
  tool({
    name: 'wait',
    title: 'Wait for a command',
    description:
      'Wait until a background command is over, at most timeout_ms. Returns its result, or the end of its output so far.',
    input: z.object({
      exec: z.string(),
      sandbox: sandboxName,
      timeout_ms: z.number().int().min(0).max(mostWaitMs).default(usualWaitMs),
      max_output: outputLimit,
    }),
    output: execResult,
    readOnly: true,
    work: async ({ input, boxes, signal }) => {
      const box = await boxes.get(input.sandbox);
      const patience = AbortSignal.any([signal, AbortSignal.timeout(input.timeout_ms)]);
      const running = box.attach(input.exec, { signal: patience });
      try {
        return resultOf(await running.wait(), input.max_output);
      } catch (error) {
        if (signal.aborted || !patience.aborted) throw error;
        return stillRunning(input.exec, await tailOf(box, input.exec, input.max_output));
      } finally {
        running.disconnect();
      }
    },
  }),
  tool({
    name: 'logs',
    title: 'Output of a command',
    description: 'The end of what a command has printed, both streams in order.',
    input: z.object({ exec: z.string(), sandbox: sandboxName, max_output: outputLimit }),
    output: z.object({ exec: z.string(), output: z.string() }),
    readOnly: true,
    work: async ({ input, boxes }) => {
      const output = await tailOf(await boxes.get(input.sandbox), input.exec, input.max_output);
      return { data: { exec: input.exec, output }, text: output };
    },
  }),
  tool({
    name: 'kill',
    title: 'Kill a command',
    description: 'End a command and everything that it started: TERM, and KILL after 5 seconds.',
    input: z.object({ exec: z.string(), sandbox: sandboxName }),
    output: z.object({ killed: z.string() }),
    work: async ({ input, boxes }) => {
      const running = (await boxes.get(input.sandbox)).attach(input.exec);
      try {
        await running.kill();
      } finally {
        running.disconnect();
      }
      return { data: { killed: input.exec } };
    },
  }),
];

async function tailOf(box: Sandbox, exec: string, most: number): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of box.logs(exec, { tail: most })) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
