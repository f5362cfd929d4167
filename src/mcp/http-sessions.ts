/**
 * The clients of one profile over HTTP, and the sandboxes of each. A client of the 2025 protocol has a session by its handshake
 * and ends it by a DELETE. One of 2026-07-28 has none: there the header `sallyport-session` tells clients of one token apart,
 * and without it they are one. Whoever is not heard of for the profile's idle time is gone.
 *
 * Who may ask was decided before; nothing here looks at a token.
 */

import {
  createMcpHandler,
  isInitializeRequest,
  isLegacyRequest,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import { type BoxesOptions, McpBoxes } from './boxes.ts';
import { mcpServer } from './server.ts';

export interface HttpSessionsOptions extends Omit<BoxesOptions, 'signal'> {
  readonly version: string;
  readonly maxSessions: number;
  readonly idleMs: number;
  /** Not to be guessed: it is all that tells two sessions of one token apart. */
  readonly newId: () => string;
  readonly now: () => Date;
}

export interface HttpAsk {
  readonly request: Request;
  /** Of the body, where it is JSON. */
  readonly parsed?: unknown;
  /** Calls back when the answer is at its end, or its client is gone. */
  readonly whenOver: (done: () => void) => void;
}

export interface SessionView {
  readonly startedAt: string;
  readonly busy: boolean;
  readonly sandboxes: readonly string[];
}

/** What a protocol's way of being served has to do. */
interface Server {
  readonly fetch: (request: Request, parsed: unknown) => Promise<Response>;
  readonly close: () => Promise<void>;
}

interface Session {
  readonly boxes: McpBoxes;
  readonly server: Server;
  readonly startedAt: string;
  readonly life: AbortController;
  underWay: number;
  idle: NodeJS.Timeout | undefined;
}

const sessionHeader = 'mcp-session-id';
const nameHeader = 'sallyport-session';

export class HttpSessions {
  readonly #options: HttpSessionsOptions;
  /** By the id of the handshake, or by the name in the header, which begins with a slash here. */
  readonly #sessions = new Map<string, Session>();
  #closed = false;

  constructor(options: HttpSessionsOptions) {
    this.#options = options;
  }

  views(): readonly SessionView[] {
    return [...this.#sessions.values()].map(({ startedAt, underWay, boxes }) => ({
      startedAt,
      busy: underWay > 0,
      sandboxes: boxes.all().map(({ name }) => name),
    }));
  }

  async answer(ask: HttpAsk): Promise<Response> {
    if (this.#closed) return refusal(404, 'the profile is gone');
    try {
      const isOld = await isLegacyRequest(ask.request, ask.parsed);
      return isOld ? await this.#answerOld(ask) : await this.#answerNew(ask);
    } catch (error) {
      if (isSallyportError(error, 'mcp_sessions_full')) return refusal(503, error.message);
      throw error;
    }
  }

  /** Ends all; resolves when their sandboxes are gone. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#sessions.keys()].map((key) => this.#end(key)));
  }

  /** The daemon stops: what was made for clients is looked after by who stops the sandboxes. */
  letGo(): void {
    this.#closed = true;
    for (const { life, idle } of this.#sessions.values()) {
      clearTimeout(idle);
      life.abort();
    }
    this.#sessions.clear();
  }

  async #answerOld(ask: HttpAsk): Promise<Response> {
    const { request, parsed } = ask;
    const id = request.headers.get(sessionHeader);
    if (id === null) {
      if (!isInitializeRequest(parsed)) return refusal(400, 'a session begins with initialize');
      return await this.#begin(ask);
    }
    const session = id.startsWith('/') ? undefined : this.#sessions.get(id);
    // The word of the protocol for: begin anew.
    if (session === undefined) return refusal(404, 'there is no such session; begin anew');
    const response = await this.#within(session, ask);
    if (request.method === 'DELETE' && response.ok) await this.#end(id);
    return response;
  }

  async #begin(ask: HttpAsk): Promise<Response> {
    const id = this.#options.newId();
    const session = this.#open(id, (boxes) => this.#oldServer(id, boxes));
    const response = await this.#within(session, ask);
    if (!response.ok) await this.#end(id);
    return response;
  }

  async #answerNew(ask: HttpAsk): Promise<Response> {
    const name = ask.request.headers.get(nameHeader) ?? '';
    if (!/^[\w.-]{0,64}$/.test(name)) return refusal(400, `${nameHeader} is a word of at most 64 characters`);
    const key = `/${name}`;
    const session = this.#sessions.get(key) ?? this.#open(key, (boxes) => this.#newServer(boxes));
    return await this.#within(session, ask);
  }

  async #within(session: Session, { request, parsed, whenOver }: HttpAsk): Promise<Response> {
    session.underWay++;
    clearTimeout(session.idle);
    whenOver(() => {
      session.underWay--;
      this.#restWhenIdle(session);
    });
    return await session.server.fetch(request, parsed);
  }

  #restWhenIdle(session: Session): void {
    if (session.underWay > 0 || session.life.signal.aborted) return;
    session.idle = setTimeout(() => {
      for (const [key, one] of this.#sessions) if (one === session) void this.#end(key);
    }, this.#options.idleMs);
    session.idle.unref();
  }

  #open(key: string, serve: (boxes: McpBoxes) => Server): Session {
    const { maxSessions, now } = this.#options;
    // It may have been revoked since the request was looked at.
    if (this.#closed) throw new SallyportError('unauthenticated', 'the token is missing or wrong');
    if (this.#sessions.size >= maxSessions) {
      throw new SallyportError('mcp_sessions_full', `${maxSessions} clients are connected already`, {
        details: { most: maxSessions },
      });
    }
    const life = new AbortController();
    const boxes = new McpBoxes({ ...this.#options, signal: life.signal });
    const startedAt = now().toISOString();
    const session = { boxes, life, startedAt, server: serve(boxes), underWay: 0, idle: undefined };
    this.#sessions.set(key, session);
    return session;
  }

  /** Its commands end, and its sandboxes are gone when this resolves. */
  async #end(key: string): Promise<void> {
    const session = this.#sessions.get(key);
    if (session === undefined) return;
    this.#sessions.delete(key);
    clearTimeout(session.idle);
    session.life.abort();
    await session.server.close().catch(this.#options.report);
    await session.boxes.close();
  }

  #oldServer(id: string, boxes: McpBoxes): Server {
    const { version, report } = this.#options;
    const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => id });
    const server = mcpServer(boxes, version);
    server.server.onerror = report;
    const connected = server.connect(transport);
    return {
      fetch: async (request, parsed) => {
        await connected;
        return await transport.handleRequest(request, bodyOf(parsed));
      },
      close: async () => await server.close(),
    };
  }

  #newServer(boxes: McpBoxes): Server {
    const { version, report } = this.#options;
    const handler = createMcpHandler(({ requestInfo }) => mcpServer(boxes, version, toolOf(requestInfo)), {
      legacy: 'reject',
      // A call that takes long and tells nothing must show that it lives, or its client gives it up.
      responseMode: 'sse',
      onerror: report,
    });
    return {
      fetch: async (request, parsed) => await handler.fetch(request, bodyOf(parsed)),
      close: async () => await handler.close(),
    };
  }
}

/** The one tool that is called. These headers say the same as the message, which was seen to before. */
const toolOf = (request: Request | undefined): string | undefined =>
  request?.headers.get('mcp-method') === 'tools/call'
    ? (request.headers.get('mcp-name') ?? undefined)
    : undefined;

const bodyOf = (parsed: unknown): { readonly parsedBody?: unknown } =>
  parsed === undefined ? {} : { parsedBody: parsed };

/** Without an id: what it answers was not looked at. */
function refusal(status: number, message: string): Response {
  const body = { jsonrpc: '2.0', error: { code: -32_000, message }, id: null };
  return Response.json(body, { status });
}
