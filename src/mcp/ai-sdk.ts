/**
 * A sandbox as tools for the AI SDK: `generateText({ model, tools: tools(box), … })`. They are those of `sally mcp`, for one sandbox
 * that the program has made. Nothing of the AI SDK is loaded here: a tool of it is a plain object.
 */

import type { Sandbox } from '../sdk/sandbox.ts';
import type { Tool } from './tool.ts';
import { commandTools } from './tools/command-tools.ts';
import { fileTools } from './tools/file-tools.ts';
import { networkTools } from './tools/network-tools.ts';

export interface AiTool {
  readonly description: string;
  /** A schema of zod, which the AI SDK takes as it is. */
  readonly inputSchema: Tool['input'];
  readonly execute: (input: unknown, options?: { readonly abortSignal?: AbortSignal }) => Promise<object>;
}

export interface ToolsOptions {
  /** Only these; absent: all. */
  readonly only?: readonly string[];
}

/** What goes wrong rejects, and the AI SDK tells the model; a command that fails is a result. */
export function tools(box: Sandbox, { only }: ToolsOptions = {}): Record<string, AiTool> {
  const boxes = { get: async () => box };
  const all: readonly Tool[] = [...commandTools, ...fileTools, ...networkTools];
  const chosen = all.filter(({ name }) => only === undefined || only.includes(name));
  return Object.fromEntries(
    chosen.map(({ name, description, input, work }) => [
      name,
      {
        description,
        inputSchema: input.omit({ sandbox: true }),
        execute: async (given, options = {}) => {
          const signal = options.abortSignal ?? new AbortController().signal;
          const { data } = await work({ input: input.parse(given) as never, boxes, signal });
          return data;
        },
      },
    ]),
  );
}
