/**
 * A route as data: the one table of them answers requests, and `openapi.ts` describes it. A handler gets what was asked
 * for, checked, and returns what to answer; it never touches the response.
 */

import type { Readable } from 'node:stream';
import type { z } from 'zod';
import type { BoxRequest } from '../protocol/box.ts';
import type { HealthView } from '../protocol/views.ts';
import type { BoxHome } from '../sandboxes/ports.ts';
import type { Browsers } from './browser/browsers.ts';
import type { DescribedBox } from './engine-parts.ts';
import type { ImageSurface } from './image-surface.ts';
import type { McpEndpoint } from './mcp/mcp-endpoint.ts';
import type { Previews } from './previews/previews.ts';
import type { QueryFields, QueryOf } from './query.ts';
import type { RecentCreates } from './recent-creates.ts';
import type { GuardSurface, SandboxesSurface, SandboxSurface, SecretsSurface } from './surface.ts';

type ParamNames<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<Rest>
  : P extends `${string}:${infer Name}`
    ? Name
    : never;

export interface SseMessage {
  readonly id?: number;
  readonly event?: string;
  readonly data: unknown;
}

export type Reply =
  | {
      readonly type: 'json';
      readonly status: number;
      readonly body: unknown;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** The body takes its time: if it is not there after a moment, the head is sent before it. */
  | {
      readonly type: 'late-json';
      readonly headers: Readonly<Record<string, string>>;
      readonly body: Promise<unknown>;
    }
  | { readonly type: 'empty' }
  | { readonly type: 'text'; readonly contentType: string; readonly body: string }
  | {
      readonly type: 'bytes';
      readonly contentType: string;
      readonly chunks: AsyncIterable<Uint8Array>;
      /** Wait for the first bytes, so that a failure before them is told by its status. */
      readonly eager: boolean;
    }
  | { readonly type: 'events'; readonly messages: AsyncIterable<SseMessage> };

export interface Services {
  readonly sandboxes: SandboxesSurface;
  readonly creates: RecentCreates;
  readonly secrets: SecretsSurface;
  readonly images: ImageSurface;
  readonly previews: Previews;
  readonly browsers: Browsers;
  readonly guard: GuardSurface;
  readonly mcp: McpEndpoint;
  readonly health: () => Promise<HealthView>;
  /** The engine's own request for this box, and a line of shell that asks for the same. */
  readonly describeBox: (box: BoxRequest, home: BoxHome) => Promise<DescribedBox>;
  readonly metricsText: () => string;
  readonly openApi: () => unknown;
  /** Begins to stop the daemon; resolves when the sandboxes are as they should be. */
  readonly shutdown: (keep: boolean) => Promise<void>;
}

export interface RouteContext<P extends string, Q, B> {
  readonly services: Services;
  readonly params: Readonly<Record<P, string>>;
  readonly query: Q;
  readonly body: B;
  /** The body as it comes, where the route takes a stream. */
  readonly stream: Readable;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Fires when the client is gone before it has its answer. */
  readonly signal: AbortSignal;
  /** Called when the answer is on its way to its end, or the client is gone. */
  readonly whenOver: (done: () => void) => void;
  /** The sandbox that the path names, with a client that is there until the answer is given. */
  readonly sandbox: () => SandboxSurface;
}

export type Answer = z.ZodType | { readonly contentType: string; readonly description: string };

export interface RouteDefinition<P extends string, Q extends QueryFields, B extends z.ZodType> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** `:name` is one segment. */
  readonly path: P;
  readonly summary: string;
  readonly query?: Q;
  /** JSON that must fit; absent where there is none. */
  readonly body?: B;
  /** The content type of a body that is not JSON and has no bound. */
  readonly streamBody?: string;
  readonly answers: Readonly<Record<number, Answer | undefined>>;
  /** Answered whatever version the client has, and while the daemon stops. */
  readonly always?: boolean;
  readonly handle: (context: RouteContext<ParamNames<P>, QueryOf<Q>, z.output<B>>) => Reply | Promise<Reply>;
}

/** A route whose types are behind it. */
export interface Route {
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly query: QueryFields;
  readonly body?: z.ZodType;
  readonly streamBody?: string;
  readonly answers: Readonly<Record<number, Answer | undefined>>;
  readonly always: boolean;
  readonly handle: (context: RouteContext<string, unknown, unknown>) => Reply | Promise<Reply>;
}

export function route<P extends string, Q extends QueryFields, B extends z.ZodType>(
  definition: RouteDefinition<P, Q, B>,
): Route {
  const { query, always = false, ...rest } = definition;
  // The router reads the query by `query` and the body by `body` before it calls the handler with them.
  return { ...rest, query: query ?? {}, always, handle: definition.handle as Route['handle'] };
}

export const json = (body: unknown, status = 200): Reply => ({ type: 'json', status, body });
