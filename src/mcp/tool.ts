/**
 * How a tool is told to clients, and how what it throws becomes an answer: a model reads what is wrong and what to do, and
 * the server goes on.
 */

import type {
  CallToolResult,
  McpServer,
  ServerContext,
  StandardSchemaWithJSON,
} from '@modelcontextprotocol/server';
import type { z } from 'zod';
import { isSallyportError } from '../protocol/errors.ts';
import type { Sandbox } from '../sdk/sandbox.ts';
import type { McpBoxes } from './boxes.ts';

/** The sandboxes that a tool may use, by their names; without one, the first. */
export interface SomeBoxes {
  readonly get: (name?: string) => Promise<Sandbox>;
}

export interface ToolCall<I, B = SomeBoxes> {
  readonly input: I;
  readonly boxes: B;
  /** Aborted when the client cancels this call. */
  readonly signal: AbortSignal;
  /** Undefined: the client does not want to hear of it. */
  readonly progress?: (message: string) => void;
}

export interface Answer<O> {
  readonly data: O;
  /** For models that see only text; absent: the data as JSON. */
  readonly text?: string;
}

interface ToolParts<I extends z.ZodObject, O extends z.ZodObject, B = SomeBoxes> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: I;
  readonly output: O;
  /** It changes nothing. */
  readonly readOnly?: boolean;
  readonly work: (call: ToolCall<z.output<I>, B>) => Promise<Answer<z.input<O>>>;
}

export interface Tool<B = SomeBoxes> {
  readonly name: string;
  readonly description: string;
  readonly input: z.ZodObject;
  readonly work: (call: ToolCall<never, B>) => Promise<Answer<object>>;
  readonly register: (server: McpServer, boxes: McpBoxes) => void;
}

/** `B`: what it needs of sandboxes, which all but a few find in one. */
export function tool<I extends z.ZodObject, O extends z.ZodObject, B extends SomeBoxes = SomeBoxes>(
  parts: ToolParts<I, O, B>,
): Tool<B> {
  const { name, title, description, input, output, readOnly, work } = parts;
  const inputSchema = describedOnce(input);
  const outputSchema = describedOnce(output);
  return {
    name,
    description,
    input,
    work: work as Tool<B>['work'],
    register: (server, boxes) => {
      server.registerTool(
        name,
        {
          title,
          description,
          inputSchema,
          outputSchema,
          // Nothing that a tool does reaches beyond the sandbox.
          annotations: { readOnlyHint: readOnly === true, openWorldHint: false },
        },
        (async (given: z.output<I>, context: ServerContext) => {
          try {
            const call = {
              input: given,
              boxes: boxes as unknown as B,
              signal: context.mcpReq.signal,
              ...progressOf(context),
            };
            return answerOf(await boxes.use(() => work(call)));
          } catch (error) {
            return failureOf(error);
          }
        }) as never,
      );
    },
  };
}

/** One that is about all sandboxes of a client. */
export const clientTool = <I extends z.ZodObject, O extends z.ZodObject>(
  parts: ToolParts<I, O, McpBoxes>,
): Tool<McpBoxes> => tool(parts);

/** The same schema; what it is as JSON is found out when it is first wanted, and not by each request anew. */
function describedOnce<S extends z.ZodObject>(schema: S): StandardSchemaWithJSON<z.input<S>, z.output<S>> {
  const standard = schema['~standard'];
  const once = (direction: 'input' | 'output'): (() => Record<string, unknown>) => {
    let json: Record<string, unknown> | undefined;
    return () => {
      json ??= standard.jsonSchema[direction]({ target: 'draft-2020-12' });
      return json;
    };
  };
  const jsonSchema = { input: once('input'), output: once('output') };
  return {
    '~standard': { version: 1, vendor: standard.vendor, validate: standard.validate, jsonSchema },
  };
}

function answerOf({ data, text }: Answer<object>): CallToolResult {
  return {
    content: [{ type: 'text', text: text ?? JSON.stringify(data) }],
    structuredContent: data as Record<string, unknown>,
  };
}

function failureOf(error: unknown): CallToolResult {
  const { code, message, advice } = isSallyportError(error)
    ? error
    : { code: 'internal', message: error instanceof Error ? error.message : String(error), advice: '' };
  return {
    isError: true,
    content: [{ type: 'text', text: JSON.stringify({ error: { code, message, advice } }) }],
  };
}

/** At most a few a second: what matters is the last word. */
const progressEveryMs = 250;

function progressOf({ mcpReq }: ServerContext): Pick<ToolCall<never>, 'progress'> {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return {};
  let progress = 0;
  let toldMs = Number.NEGATIVE_INFINITY;
  return {
    progress: (message) => {
      const nowMs = performance.now();
      if (nowMs - toldMs < progressEveryMs) return;
      toldMs = nowMs;
      const params = { progressToken, progress: ++progress, message };
      void mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {});
    },
  };
}
