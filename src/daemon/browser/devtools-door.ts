/**
 * A port of this machine that leads to the DevTools of one browser, for clients that have its token. It lives as long as the browser and
 * this daemon; nothing of it is stored.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type BoundPort, bindPort } from '../../sandboxes/bound-port.ts';
import { InjectedConnections } from '../injected-connections.ts';
import { relayRequest, relayWebSocket } from '../previews/preview-relay.ts';
import { refuseUpgrade } from '../refuse-upgrade.ts';
import { admit, newToken } from './devtools-access.ts';
import { askListing, isListing, throughDoor } from './devtools-json.ts';

export interface DevToolsDoorOptions {
  /** Port of this machine; a free one if absent. */
  readonly port?: number | undefined;
  /** To the DevTools inside; the connection ends with the asker. */
  readonly connect: (asker: Duplex | ServerResponse, open: Set<Duplex>) => Promise<Duplex>;
}

export class DevToolsDoor {
  readonly #connect: DevToolsDoorOptions['connect'];
  readonly #bound: BoundPort;
  readonly #token = newToken();
  readonly #server: Server;
  readonly #connections: InjectedConnections;
  readonly #open = new Set<Duplex>();

  private constructor(bound: BoundPort, connect: DevToolsDoorOptions['connect']) {
    this.#bound = bound;
    this.#connect = connect;
    this.#server = createServer({ requestTimeout: 0 }, (request, response) =>
      this.#answer(request, response),
    );
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
    this.#connections = new InjectedConnections(this.#server);
    bound.take(this.#connections.take);
  }

  /** Rejects with `port_unavailable`. */
  static async open({ port, connect }: DevToolsDoorOptions): Promise<DevToolsDoor> {
    const host = port === undefined ? {} : { host: port };
    return new DevToolsDoor(await bindPort({ box: 0, ...host }), connect);
  }

  get port(): number {
    return this.#bound.port.host;
  }

  /** Without a scheme. */
  get address(): string {
    return `127.0.0.1:${this.port}/${this.#token}`;
  }

  /** Also what is connected. */
  close(): void {
    this.#bound.close();
    for (const stream of this.#open) stream.destroy();
    this.#server.closeAllConnections();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const admission = this.#admit(request);
    if ('status' in admission) {
      sendReason(response, admission.status, admission.reason);
      return;
    }
    const failed = (): void => sendReason(response, 502, 'the browser does not answer');
    const { path } = admission;
    this.#connect(response, this.#open)
      .then(async (inside) => {
        if (isListing(path)) await this.#list(request, response, path, inside);
        else relayRequest(withPath(request, path), response, inside, failed);
      })
      .catch(failed);
  }

  async #list(
    { method = 'GET', headers: { host = '' } }: IncomingMessage,
    response: ServerResponse,
    path: string,
    inside: Duplex,
  ): Promise<void> {
    const { status, body } = await askListing({ method, host, path }, inside);
    response.writeHead(status, { ...plainHeaders, 'content-type': 'application/json; charset=utf-8' });
    response.end(JSON.stringify(throughDoor(body, `${host}/${this.#token}`)));
  }

  #upgrade(request: IncomingMessage, client: Duplex, head: Buffer): void {
    client.on('error', () => {});
    this.#connections.requestCame(client);
    const admission = this.#admit(request);
    const isWebSocket = request.headers.upgrade?.toLowerCase() === 'websocket';
    if ('status' in admission || !isWebSocket) {
      refuseUpgrade(client, 'status' in admission ? admission.status : 400);
      return;
    }
    this.#connect(client, this.#open)
      .then((inside) => relayWebSocket(withPath(request, admission.path), client, head, inside))
      .catch(() => refuseUpgrade(client, 502));
  }

  #admit(request: IncomingMessage): ReturnType<typeof admit> {
    return admit(request, { port: this.port, token: this.#token });
  }
}

const plainHeaders = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const;

/** SECURITY: the connection ends with it: strangers do not hold the places of the port. */
function sendReason(response: ServerResponse, status: number, reason: string): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const headers = { ...plainHeaders, 'content-type': 'text/plain; charset=utf-8', connection: 'close' };
  response.writeHead(status, headers);
  response.end(`sally: ${reason}\n`);
}

/** SECURITY: the token stays outside; the browser in the sandbox never sees it. */
function withPath(request: IncomingMessage, path: string): IncomingMessage {
  request.url = path;
  return request;
}
