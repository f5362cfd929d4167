/**
 * The MCP server over HTTP: a port of its own on this machine's loopback, open while there is a profile. A token is one
 * profile's and opens nothing else: the API is not behind this port, and its token is not one of these.
 */

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { HttpSessions } from '../../mcp/http-sessions.ts';
import { type ErrorCode, SallyportError } from '../../protocol/errors.ts';
import type { McpProfile, McpProfileView, McpTokenView } from '../../protocol/mcp.ts';
import { type BoundPort, bindPort } from '../../sandboxes/bound-port.ts';
import type { DaemonClient } from '../../sdk/client.ts';
import type { KeptProfile, McpProfileFile } from '../../store/mcp-profiles.ts';
import { bearerToken, requireOwnOrigin } from '../auth.ts';
import { presentable } from '../http-error.ts';
import { InjectedConnections } from '../injected-connections.ts';
import type { Logger } from '../logger.ts';
import { sendError } from '../send-reply.ts';

export interface McpEndpointParts {
  readonly file: McpProfileFile;
  /** Of this daemon itself: tools act by the same API as every other client. */
  readonly client: () => DaemonClient;
  readonly log: Logger;
  readonly version: string;
}

const path = '/mcp';
const endsConnection: ReadonlySet<ErrorCode> = new Set([
  'request_too_large',
  'unauthenticated',
  'origin_refused',
]);

export class McpEndpoint {
  readonly #parts: McpEndpointParts;
  readonly #server: Server;
  readonly #connections: InjectedConnections;
  readonly #sessions = new Map<string, HttpSessions>();
  #bound: BoundPort | undefined;
  #client: DaemonClient | undefined;
  #code: ReturnType<typeof load> | undefined;
  #closed = false;

  constructor(parts: McpEndpointParts) {
    this.#parts = parts;
    this.#server = createServer({ requestTimeout: 0 }, (request, response) => {
      void this.#serve(request, response);
    });
    this.#server.keepAliveTimeout = 0;
    this.#server.on('clientError', (_error, socket) => socket.destroy());
    this.#connections = new InjectedConnections(this.#server);
  }

  /** While it is, somebody may connect at any time. */
  get isOpen(): boolean {
    return this.#bound !== undefined;
  }

  /** As an earlier daemon had it. A port that somebody else has now is said, and keeps nothing else from working. */
  async resume(): Promise<void> {
    const { file, log } = this.#parts;
    try {
      if (file.list().length > 0) await this.#listen(file.port);
    } catch (error) {
      log.error('the MCP server does not listen', { error });
    }
  }

  list(): readonly McpProfileView[] {
    return this.#parts.file.list().map((profile) => ({
      name: profile.name,
      url: this.#url(),
      spec: shownSpec(profile.spec),
      images: [...profile.images],
      max_sandboxes: profile.maxSandboxes,
      max_sessions: profile.maxSessions,
      idle_ms: profile.idleMs,
      created_at: profile.createdAt,
      sessions: (this.#sessions.get(profile.name)?.views() ?? []).map(({ startedAt, busy, sandboxes }) => ({
        started_at: startedAt,
        busy,
        sandboxes: [...sandboxes],
      })),
    }));
  }

  /** One of this name is replaced: its token is over, and so are its clients. */
  async serve(name: string, profile: McpProfile, port: number | undefined): Promise<McpTokenView> {
    this.#requireOpen();
    await this.#listen(port ?? this.#parts.file.port);
    return await this.#give({ ...profile, name, createdAt: new Date().toISOString() });
  }

  /** What the clients of the old one have goes with it. */
  async renewToken(name: string): Promise<McpTokenView> {
    this.#requireOpen();
    const { tokenHash: _, ...profile } = this.#get(name);
    await this.#listen(this.#parts.file.port);
    return await this.#give(profile);
  }

  /** Resolves when what its clients had is gone. */
  async revoke(name: string): Promise<void> {
    this.#get(name);
    this.#parts.file.remove(name);
    await this.#endSessions(name);
    if (this.#parts.file.list().length === 0) this.#unlisten();
  }

  close(): void {
    this.#closed = true;
    for (const sessions of this.#sessions.values()) sessions.letGo();
    this.#sessions.clear();
    this.#unlisten();
    this.#client?.close();
  }

  async #give(profile: Omit<KeptProfile, 'tokenHash'>): Promise<McpTokenView> {
    const { name } = profile;
    const token = `sallymcp_${randomBytes(32).toString('base64url')}`;
    this.#parts.file.save({ ...profile, tokenHash: digest(token).toString('hex') });
    await this.#endSessions(name);
    return { name, url: this.#url(), token };
  }

  async #endSessions(name: string): Promise<void> {
    const sessions = this.#sessions.get(name);
    this.#sessions.delete(name);
    await sessions?.close();
  }

  #get(name: string): KeptProfile {
    const found = this.#parts.file.find(name);
    if (found !== undefined) return found;
    throw new SallyportError('mcp_profile_not_found', `there is no profile ${name}`, { details: { name } });
  }

  #requireOpen(): void {
    if (this.#closed) throw new SallyportError('daemon_stopping', 'the daemon is stopping');
  }

  /** The same port as before, if it can be had: clients were told of it. */
  async #listen(port: number | undefined): Promise<void> {
    if (this.#bound !== undefined && (port === undefined || this.#bound.port.host === port)) return;
    const bound = await bindPort({ box: 0, ...(port === undefined ? {} : { host: port }) });
    if (this.#closed) {
      bound.close();
      this.#requireOpen();
    }
    bound.take(this.#connections.take);
    this.#bound?.close();
    this.#bound = bound;
    this.#parts.file.savePort(bound.port.host);
  }

  #unlisten(): void {
    this.#bound?.close();
    this.#bound = undefined;
    this.#server.closeAllConnections();
  }

  #url(): string {
    const port = this.#bound?.port.host ?? this.#parts.file.port;
    return port === undefined ? '' : `http://127.0.0.1:${port}${path}`;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      requireOwnOrigin(request);
      const profile = this.#profileOf(request);
      if (request.url?.split('?', 1)[0] !== path) {
        throw new SallyportError('route_unknown', `the MCP server is at ${path}`);
      }
      this.#code ??= load();
      const { webRequest, sendResponse, HttpSessions } = await this.#code;
      const ask = await webRequest(request, response);
      if (ask === undefined) throw new SallyportError('request_too_large', 'the message is too large');
      const sessions = this.#sessionsOf(profile, HttpSessions);
      await sendResponse(response, ask, await sessions.answer(ask));
    } catch (error) {
      if (response.closed) return;
      const shown = presentable(error);
      if (shown.kind === 'internal') this.#parts.log.error('an MCP request failed', { error });
      // What is left of such a message must not be taken for the next one, and a stranger holds no place of the port.
      if (endsConnection.has(shown.code)) response.setHeader('connection', 'close');
      if (shown.code === 'unauthenticated') response.setHeader('www-authenticate', 'Bearer');
      sendError(response, shown);
    }
  }

  /** SECURITY: looked up at each request, so that a token that was revoked opens nothing. All are compared, found or not. */
  #profileOf(request: IncomingMessage): KeptProfile {
    const given = digest(bearerToken(request));
    const fitting = this.#parts.file
      .list()
      .filter(({ tokenHash }) => timingSafeEqual(Buffer.from(tokenHash, 'hex'), given));
    const [profile] = fitting;
    if (profile === undefined) throw new SallyportError('unauthenticated', 'the token is missing or wrong');
    return profile;
  }

  #sessionsOf(profile: KeptProfile, Sessions: typeof HttpSessions): HttpSessions {
    const { name, spec, images, maxSandboxes, maxSessions, idleMs, approvedDockerfile } = profile;
    // It may have been revoked or replaced while this waited.
    if (this.#closed || this.#parts.file.find(name)?.tokenHash !== profile.tokenHash) {
      throw new SallyportError('unauthenticated', 'the token is missing or wrong');
    }
    const known = this.#sessions.get(name);
    if (known !== undefined) return known;
    const { client, log, version } = this.#parts;
    this.#client ??= client();
    const made = new Sessions({
      client: this.#client,
      rules: { spec, images, mostSandboxes: maxSandboxes },
      approveDockerfile: approvedDockerfile ?? false,
      version,
      maxSessions,
      idleMs,
      newId: () => randomBytes(24).toString('base64url'),
      now: () => new Date(),
      report: (error) => log.error('an MCP client had a failure', { profile: name, error }),
    });
    this.#sessions.set(name, made);
    return made;
  }
}

/** When the first client comes: most daemons never have one. */
async function load() {
  const { webRequest, sendResponse } = await import('../../mcp/node-exchange.ts');
  const { HttpSessions } = await import('../../mcp/http-sessions.ts');
  return { webRequest, sendResponse, HttpSessions };
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Values of variables may be what their author would not show. */
function shownSpec(spec: McpProfile['spec']): Record<string, unknown> {
  const { envs, ...rest } = spec;
  const names = Object.keys(envs ?? {});
  return names.length === 0 ? rest : { ...rest, envs: Object.fromEntries(names.map((name) => [name, '…'])) };
}
