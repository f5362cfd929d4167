/**
 * Ports of sandboxes for the browser of this user, and nobody else: each under a host name of its own below `localhost`, by a link that
 * works once. Other users of this machine, and web pages, can connect, and get nothing.
 *
 * Nothing of it outlives the daemon. The API of the daemon is not behind it.
 */

import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { SallyportError } from '../../protocol/errors.ts';
import type { PreviewBody } from '../../protocol/requests.ts';
import type { PreviewView } from '../../protocol/views.ts';
import { type BoundPort, bindPort } from '../../sandboxes/bound-port.ts';
import { InjectedConnections } from '../injected-connections.ts';
import { connectInside } from '../inside-connection.ts';
import { refuseUpgrade } from '../refuse-upgrade.ts';
import type { SandboxSurface } from '../surface.ts';
import type { LaunchFiles } from './launch-files.ts';
import { isOwnRequest, PreviewAccess, previewCookie } from './preview-access.ts';
import { sendEntered, sendWords } from './preview-pages.ts';
import { relayRequest, relayWebSocket } from './preview-relay.ts';

const tokenMs = 5 * 60_000;
const usualSessionMs = 12 * 3_600_000;
const enterPath = '/.sallyport/enter/';
/** All previews share one port: a page that opens connections without end leaves places for the others. */
const mostOfPreview = 64;
const longestTimerMs = 2 ** 31 - 1;

export interface PreviewsParts {
  readonly find: (sandboxId: string) => SandboxSurface | undefined;
  readonly files: LaunchFiles;
  readonly now: () => number;
}

interface Preview {
  readonly label: string;
  readonly sandboxId: string;
  readonly sandbox: string;
  readonly port: number;
  readonly access: PreviewAccess;
  readonly open: Set<Duplex>;
  /** Requests and WebSockets that are relayed, or wait for the program. */
  readonly askers: Set<Duplex | ServerResponse>;
}

export class Previews {
  readonly #parts: PreviewsParts;
  readonly #previews = new Map<string, Preview>();
  readonly #server: Server;
  readonly #connections: InjectedConnections;
  #bound: Promise<BoundPort> | undefined;
  #isClosed = false;

  constructor(parts: PreviewsParts) {
    this.#parts = parts;
    this.#server = createServer({ requestTimeout: 0 }, (request, response) =>
      this.#answer(request, response),
    );
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
    this.#connections = new InjectedConnections(this.#server);
  }

  /** A new link. The same port of the same sandbox has the same host, so that what its pages keep in the browser stays. */
  async open(sandbox: SandboxSurface, { port, path, ttl_ms }: PreviewBody): Promise<PreviewView> {
    const bound = await this.#listen();
    const preview = this.#of(sandbox, port, ttl_ms ?? usualSessionMs);
    const token = preview.access.mintToken(tokenMs);
    const origin = originOf(preview, bound);
    const to = path === '/' ? '' : `?to=${encodeURIComponent(path)}`;
    const url = `${origin}${enterPath}${token}${to}`;
    return {
      ...viewOf(preview, bound),
      url,
      url_expires_at: new Date(this.#parts.now() + tokenMs).toISOString(),
      launch_file: this.#parts.files.write(preview.label, url, tokenMs),
    };
  }

  async list(sandbox: SandboxSurface): Promise<readonly PreviewView[]> {
    const bound = await this.#bound;
    if (bound === undefined) return [];
    return this.#all(sandbox.id).map((preview) => viewOf(preview, bound));
  }

  /** Links, sessions and connections of it are over. */
  revoke(sandbox: SandboxSurface, label: string): void {
    const preview = this.#previews.get(label);
    if (preview?.sandboxId !== sandbox.id) {
      throw new SallyportError('preview_not_found', `sandbox ${sandbox.name} has no preview ${label}`, {
        details: { sandbox: sandbox.name, preview: label },
      });
    }
    this.#forget(preview);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const preview of this.#previews.values()) this.#forget(preview);
    (await this.#bound?.catch(() => undefined))?.close();
    this.#server.closeAllConnections();
  }

  async #listen(): Promise<BoundPort> {
    if (this.#isClosed) throw new SallyportError('daemon_stopping', 'the daemon stops: no more previews');
    this.#bound ??= bindPort({ box: 0 }).then((bound) => {
      bound.take(this.#connections.take);
      return bound;
    });
    try {
      return await this.#bound;
    } catch (error) {
      this.#bound = undefined;
      throw error;
    }
  }

  #of({ id, name }: SandboxSurface, port: number, sessionMs: number): Preview {
    const known = this.#all(id).find((preview) => preview.port === port);
    if (known !== undefined && known.access.sessionMs === sessionMs) return known;
    if (known !== undefined) this.#forget(known);
    const preview: Preview = {
      label: randomBytes(10).toString('hex'),
      sandboxId: id,
      sandbox: name,
      port,
      access: new PreviewAccess(this.#parts.now, sessionMs),
      open: new Set(),
      askers: new Set(),
    };
    this.#previews.set(preview.label, preview);
    return preview;
  }

  #all(sandboxId: string): readonly Preview[] {
    return [...this.#previews.values()].filter((preview) => preview.sandboxId === sandboxId);
  }

  #forget(preview: Preview): void {
    this.#previews.delete(preview.label);
    this.#parts.files.remove(preview.label);
    for (const stream of preview.open) stream.destroy();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const preview = this.#previewFor(request);
    if (preview === undefined) {
      sendWords(response, 421, 'no preview has this name; `sally open <box> <port>` gives a link');
      return;
    }
    const { url = '/' } = request;
    if (url.startsWith(enterPath)) {
      this.#enter(preview, request, response);
      return;
    }
    const admission = admissionOf(preview, request);
    if ('words' in admission) {
      sendWords(response, admission.status, admission.words);
      return;
    }
    const failed = (): void =>
      sendWords(response, 502, `nothing answers on port ${preview.port} in ${preview.sandbox}`);
    this.#connect(preview, response, admission)
      .then((inside) => relayRequest(request, response, inside, failed))
      .catch(failed);
  }

  #enter(preview: Preview, request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    const to = searchParams.get('to') ?? '/';
    const token = pathname.slice(enterPath.length);
    const session = request.method === 'GET' && isOwnPath(to) ? preview.access.exchange(token) : undefined;
    if (session === undefined) {
      const words = `this link was used before, or is too old; \`sally open ${preview.sandbox} ${preview.port}\` gives another`;
      sendWords(response, 403, words);
      return;
    }
    this.#parts.files.remove(preview.label);
    const age = Math.floor(preview.access.sessionMs / 1000);
    const cookie = `${previewCookie}=${session}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${age}`;
    sendEntered(response, cookie, to);
  }

  #upgrade(request: IncomingMessage, client: Duplex, head: Buffer): void {
    client.on('error', () => {});
    this.#connections.requestCame(client);
    const preview = this.#previewFor(request);
    const isWebSocket = request.headers.upgrade?.toLowerCase() === 'websocket';
    const admission = preview === undefined ? { status: 421 } : admissionOf(preview, request);
    if (preview === undefined || 'status' in admission || !isWebSocket) {
      const status = 'status' in admission ? admission.status : 400;
      refuseUpgrade(client, status);
      return;
    }
    this.#connect(preview, client, admission)
      .then((inside) => relayWebSocket(request, client, head, inside))
      .catch(() => refuseUpgrade(client, 502));
  }

  /** SECURITY: an address, and a name that an attacker's DNS points here, is nobody's preview. */
  #previewFor({ headers }: IncomingMessage): Preview | undefined {
    const label = /^([a-z0-9]+)\.localhost:\d+$/.exec(headers.host ?? '')?.[1];
    return label === undefined ? undefined : this.#previews.get(label);
  }

  /** The connection ends with the client, the client's session and the preview. */
  async #connect(preview: Preview, asker: Duplex | ServerResponse, { untilMs }: Admitted): Promise<Duplex> {
    const sandbox = this.#parts.find(preview.sandboxId);
    if (sandbox === undefined) {
      this.#forget(preview);
      throw new SallyportError('sandbox_not_found', `sandbox ${preview.sandbox} is gone`);
    }
    preview.askers.add(asker);
    asker.once('close', () => preview.askers.delete(asker));
    const inside = await connectInside(sandbox, preview.port, asker, preview.open);
    const leftMs = Math.min(untilMs - this.#parts.now(), longestTimerMs);
    const timer = setTimeout(() => inside.destroy(), leftMs).unref();
    inside.once('close', () => clearTimeout(timer));
    if (!this.#previews.has(preview.label)) inside.destroy();
    return inside;
  }
}

interface Admitted {
  /** The end of the session. */
  readonly untilMs: number;
}

function admissionOf(
  { access, sandbox, port, askers }: Preview,
  { headers }: IncomingMessage,
): Admitted | { readonly status: number; readonly words: string } {
  const untilMs = access.admittedUntilMs(headers);
  if (untilMs === undefined) {
    return { status: 401, words: `this needs a link: \`sally open ${sandbox} ${port}\`` };
  }
  if (!isOwnRequest(headers, headers.host ?? '')) {
    return { status: 403, words: 'this request comes from a page of another site' };
  }
  if (askers.size < mostOfPreview) return { untilMs };
  return { status: 503, words: `${mostOfPreview} requests of this preview are under way` };
}

/** Of this host: neither another's address nor a path that begins with one. */
const isOwnPath = (path: string): boolean => /^\/(?![/\\])[\x21-\x7e]*$/.test(path);

const originOf = ({ label }: Preview, { port }: BoundPort): string =>
  `http://${label}.localhost:${port.host}`;

function viewOf(preview: Preview, bound: BoundPort): PreviewView {
  const { label, port, access } = preview;
  return {
    id: label,
    box: port,
    origin: originOf(preview, bound),
    session_ms: access.sessionMs,
    sessions: access.sessions,
  };
}
