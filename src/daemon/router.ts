/**
 * From a request to the answer of its route: finds the route, checks who asks, reads query and body. It knows the table
 * and no route by name.
 */

import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { clientHeader, compareVersions, readClientHeader } from '../protocol/client-header.ts';
import { SallyportError } from '../protocol/errors.ts';
import { decodeBytes, readQuery } from './query.ts';
import { readJson, requireType } from './request-body.ts';
import type { Reply, Route, RouteContext, Services } from './route.ts';
import type { SocketRoute } from './socket-route.ts';
import type { SandboxSurface } from './surface.ts';

export interface Matched<R> {
  readonly route: R;
  readonly params: Readonly<Record<string, string>>;
  readonly rawQuery: string;
}

/** What a route is asked with: a request of HTTP, or one from within this process. */
export type Asked = Readable & Pick<IncomingMessage, 'headers'>;

export interface Call {
  readonly request: Asked;
  readonly signal: AbortSignal;
  readonly whenOver: (done: () => void) => void;
}

export interface RouterOptions {
  readonly routes: readonly Route[];
  readonly socketRoutes: readonly SocketRoute[];
  readonly services: Services;
  readonly version: string;
  readonly engineKey: string;
  /** True from the moment at which nothing new is taken. */
  readonly isStopping: () => boolean;
}

interface Compiled<R> {
  readonly route: R;
  readonly segments: readonly string[];
}

const compile = <R extends { readonly path: string }>(routes: readonly R[]): readonly Compiled<R>[] =>
  routes.map((route) => ({ route, segments: route.path.split('/') }));

export class Router {
  readonly #options: RouterOptions;
  readonly #routes: readonly Compiled<Route>[];
  readonly #socketRoutes: readonly Compiled<SocketRoute>[];

  constructor(options: RouterOptions) {
    this.#options = options;
    this.#routes = compile(options.routes);
    this.#socketRoutes = compile(options.socketRoutes);
  }

  match(method: string, url: string): Matched<Route> {
    const [path, rawQuery] = splitUrl(url);
    const fitting = find(this.#routes, path);
    if (fitting.length === 0) throw unknownRoute();
    const found = fitting.find(({ route }) => route.method === method);
    if (found === undefined) {
      throw new SallyportError('method_unknown', `the route does not take ${method.slice(0, 20)}`);
    }
    return { ...found, rawQuery };
  }

  matchSocket(url: string): Matched<SocketRoute> {
    const [path, rawQuery] = splitUrl(url);
    const [found] = find(this.#socketRoutes, path);
    if (found === undefined) throw unknownRoute();
    return { ...found, rawQuery };
  }

  async answer({ route, params, rawQuery }: Matched<Route>, call: Call): Promise<Reply> {
    const { request, signal, whenOver } = call;
    if (!route.always) this.admit(request);
    const query = readQuery(route.query, rawQuery);
    if (route.streamBody !== undefined && route.streamBody !== '*/*') requireType(request, route.streamBody);
    const body = route.body === undefined ? undefined : await readJson(request, route.body);
    const context: RouteContext<string, unknown, unknown> = {
      services: this.#options.services,
      params,
      query,
      body,
      stream: request,
      headers: request.headers,
      signal,
      whenOver,
      sandbox: () => this.heldSandbox(params['sandbox'] ?? '', whenOver),
    };
    const { sandbox } = params;
    if (sandbox !== undefined) await this.#recovered(sandbox);
    return await route.handle(context);
  }

  /** Calls wait for their own sandbox, and not for all that an earlier daemon left. */
  async #recovered(reference: string): Promise<void> {
    let found: SandboxSurface;
    try {
      found = this.#options.services.sandboxes.get(reference);
    } catch {
      // What a sandbox that is not there means is for the route to say.
      return;
    }
    await found.recovered;
  }

  heldSandbox(reference: string, whenOver: Call['whenOver']): SandboxSurface {
    const sandbox = this.#options.services.sandboxes.get(reference);
    whenOver(sandbox.hold());
    return sandbox;
  }

  /** Refuses, before anything is done, a client that does not fit to this daemon. */
  admit(request: Pick<Asked, 'headers'>): void {
    if (this.#options.isStopping()) throw new SallyportError('daemon_stopping', 'the daemon is stopping');
    const value = request.headers[clientHeader];
    if (value === undefined) return;
    const client = typeof value === 'string' ? readClientHeader(value) : undefined;
    if (client === undefined) {
      throw new SallyportError('request_invalid', `the header ${clientHeader} says no version`, {
        details: { field: `header.${clientHeader}` },
      });
    }
    const { version, engineKey } = this.#options;
    const order = compareVersions(client.version, version);
    const details = { client_version: client.version, daemon_version: version };
    if (order > 0) {
      throw new SallyportError('daemon_outdated', `the daemon is ${version}, its client ${client.version}`, {
        details,
      });
    }
    if (order < 0) {
      throw new SallyportError('client_outdated', `the daemon is ${version}, its client ${client.version}`, {
        details,
      });
    }
    if (client.engineKey !== undefined && client.engineKey !== engineKey) {
      throw new SallyportError(
        'daemon_engine_differs',
        `the daemon works with ${engineKey}, and the call is for ${client.engineKey}`,
        { details: { engine: client.engineKey, daemon_engine: engineKey } },
      );
    }
  }
}

/** Lists nothing: what there is, is in `/openapi.json`. */
function unknownRoute(): SallyportError {
  return new SallyportError('route_unknown', 'there is no such route');
}

function splitUrl(url: string): readonly [string, string] {
  const at = url.indexOf('?');
  return at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)];
}

function find<R>(
  compiled: readonly Compiled<R>[],
  path: string,
): { readonly route: R; readonly params: Readonly<Record<string, string>> }[] {
  const parts = path.split('/');
  const found: { route: R; params: Record<string, string> }[] = [];
  for (const { route, segments } of compiled) {
    const params = matchSegments(segments, parts);
    if (params !== undefined) found.push({ route, params });
  }
  return found;
}

function matchSegments(
  segments: readonly string[],
  parts: readonly string[],
): Record<string, string> | undefined {
  if (segments.length !== parts.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const part = parts[index] ?? '';
    if (segment.startsWith(':')) {
      if (part === '') return undefined;
      params[segment.slice(1)] = decodeBytes(part).toString('utf8');
    } else if (segment !== part) return undefined;
  }
  return params;
}
