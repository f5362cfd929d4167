/** The table of routes as OpenAPI 3.1. The same schemas check requests, so the description cannot be wrong about them. */

import { z } from 'zod';
import { eventSchema } from '../protocol/events.ts';
import { buildMessage, dockerfileView, imageView } from '../protocol/images.ts';
import {
  errorView,
  execResultView,
  execView,
  sandboxView,
  statView,
  stoppedView,
  watchView,
  workspaceScanView,
} from '../protocol/views.ts';
import type { QueryFields } from './query.ts';
import type { Answer, Route } from './route.ts';
import type { SocketRoute } from './socket-route.ts';

type Json = Readonly<Record<string, unknown>>;

const named = new Map<z.ZodType, string>([
  [errorView, 'Error'],
  [sandboxView, 'Sandbox'],
  [stoppedView, 'StoppedSandbox'],
  [workspaceScanView, 'WorkspaceScan'],
  [execView, 'Exec'],
  [execResultView, 'ExecResult'],
  [statView, 'Stat'],
  [eventSchema, 'Event'],
  [watchView, 'Change'],
  [imageView, 'Image'],
  [dockerfileView, 'Dockerfile'],
  [buildMessage, 'BuildMessage'],
]);

const errorAnswer = {
  description: 'What failed, and what to do next (docs/errors.md)',
  content: {
    'application/json': {
      schema: {
        type: 'object',
        properties: { error: { $ref: '#/components/schemas/Error' } },
        required: ['error'],
      },
    },
  },
};

export function openApi(
  routes: readonly Route[],
  socketRoutes: readonly SocketRoute[],
  version: string,
): Json {
  const paths: Record<string, Record<string, unknown>> = {};
  const add = (path: string, method: string, operation: Json): void => {
    const key = path.replaceAll(/:(\w+)/g, '{$1}');
    paths[key] = { ...paths[key], [method.toLowerCase()]: operation };
  };
  for (const route of routes) add(route.path, route.method, describe(route));
  for (const { path, summary, query } of socketRoutes) {
    add(path, 'GET', {
      summary,
      operationId: operationId('GET', path),
      parameters: parameters(path, query),
      responses: { 101: { description: 'A WebSocket (docs/api.md)' }, default: errorAnswer },
    });
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sallyport',
      version,
      description:
        'The daemon, on a Unix socket of its user. Over TCP each request carries the bearer token. Bodies hold at most 1 MB of JSON.',
    },
    paths,
    components: {
      schemas: Object.fromEntries([...named].map(([schema, name]) => [name, convert(schema, 'output')])),
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
    security: [{}, { token: [] }],
  };
}

function describe(route: Route): Json {
  const { method, path, summary, query, body, streamBody, answers } = route;
  const content =
    body === undefined
      ? streamBody === undefined
        ? undefined
        : { [streamBody === '*/*' ? 'application/octet-stream' : streamBody]: {} }
      : { 'application/json': { schema: convert(body, 'input') } };
  return {
    summary,
    operationId: operationId(method, path),
    parameters: parameters(path, query),
    ...(content === undefined ? {} : { requestBody: { content } }),
    responses: {
      ...Object.fromEntries(
        Object.entries(answers).map(([status, answer]) => [status, describeAnswer(answer)]),
      ),
      default: errorAnswer,
    },
  };
}

function describeAnswer(answer: Answer | undefined): Json {
  if (answer === undefined) return { description: 'Done' };
  if (!(answer instanceof z.ZodType)) {
    return { description: answer.description, content: { [answer.contentType]: {} } };
  }
  const name = named.get(answer);
  const schema = name === undefined ? convert(answer, 'output') : { $ref: `#/components/schemas/${name}` };
  return { description: name ?? 'The answer', content: { 'application/json': { schema } } };
}

function parameters(path: string, query: QueryFields): readonly Json[] {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const inQuery = Object.entries(query).map(([name, { description, required, schema }]) => ({
    name,
    in: 'query',
    required,
    description,
    schema,
  }));
  return [...inPath, ...inQuery];
}

/** `GET /v1/sandboxes/:sandbox/execs` is `get_sandboxes_sandbox_execs`. */
function operationId(method: string, path: string): string {
  const words = path.split(/[/:.]+/).filter((word) => word !== '' && word !== 'v1');
  return [method.toLowerCase(), ...words].join('_');
}

function convert(schema: z.ZodType, io: 'input' | 'output'): Json {
  // What a transform makes of a size or a duration has no schema of its own; in a request its input has.
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return rest;
}
