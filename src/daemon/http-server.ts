/**
 * The HTTP server: one set of routes behind a Unix socket and, if asked for, a TCP port. It watches over each request from
 * its first byte to the end of its answer, so that a client that is gone is noticed and a stop leaves nobody without answer.
 */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { SallyportError } from '../protocol/errors.ts';
import type { Authenticate } from './auth.ts';
import { errorBody, presentable, statusOf } from './http-error.ts';
import {
  type InnerAnswer,
  type InnerCall,
  InnerWatch,
  innerAnswer,
  innerRequest,
  wholeReply,
} from './inner-call.ts';
import type { Logger } from './logger.ts';
import { readQuery } from './query.ts';
import { refuseUpgrade } from './refuse-upgrade.ts';
import type { Route } from './route.ts';
import type { Matched, Router } from './router.ts';
import { sendError, sendReply } from './send-reply.ts';

/** A frame from a client; what is larger than this is no stdin of ours. */
const mostFrameBytes = 1_048_576;
const closeGoingAway = 1001;
/** Of a TCP port, where everybody on the machine can connect; on the Unix socket only its owner can. */
const mostTcpConnections = 1024;

/** Why a request ends that its client did not give up. */
export class DaemonStopping extends Error {
  override readonly message = 'the daemon is stopping';
}

export interface HttpObserver {
  /** The route's path, or `unknown`: never what was asked for, which may hold anything. */
  answered(route: string, method: string, status: number): void;
}

export interface HttpServerOptions {
  readonly router: Router;
  readonly log: Logger;
  readonly observer: HttpObserver;
  /** Called whenever something began or ended; idle means that nothing is under way. */
  readonly onActivity: () => void;
}

interface Running {
  /** Ends by itself only when its client goes: stopped first when the daemon stops. */
  readonly endless: boolean;
  readonly abort: (reason: Error) => void;
  readonly over: Promise<void>;
}

export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #servers: Server[] = [];
  readonly #running = new Set<Running>();
  readonly #webSockets = new WebSocketServer({ noServer: true, maxPayload: mostFrameBytes });

  constructor(options: HttpServerOptions) {
    this.#options = options;
  }

  get isBusy(): boolean {
    return this.#running.size > 0;
  }

  /** Resolves when it listens; what it rejects with says why it cannot. */
  async listen(
    where: { readonly path: string } | { readonly host: string; readonly port: number },
    authenticate: Authenticate,
  ): Promise<Server> {
    const server = createServer({ requestTimeout: 0, headersTimeout: 30_000 });
    // A client may keep its connection as long as it likes: closing it would race with its next request.
    server.keepAliveTimeout = 0;
    server.on('request', (request, response) => void this.#serve(request, response, authenticate));
    server.on('upgrade', (request, socket, head) => void this.#upgrade(request, socket, head, authenticate));
    server.on('clientError', (_error, socket) => socket.destroy());
    if ('port' in where) server.maxConnections = mostTcpConnections;
    server.listen(where);
    await once(server, 'listening');
    this.#servers.push(server);
    return server;
  }

  /**
   * What the Unix socket would answer, for a caller in this process: nothing is written and read again on the way.
   * SECURITY: nobody is authenticated here, as on that socket. It is for the daemon's own client, and never handed on.
   */
  async ask(call: InnerCall): Promise<InnerAnswer> {
    const { router, log, observer, onActivity } = this.#options;
    const watch = new InnerWatch(call.signal);
    this.#running.add(watch);
    onActivity();
    let path = 'unknown';
    let status = 0;
    try {
      const { signal } = watch;
      signal.throwIfAborted();
      const matched = router.match(call.method, call.path);
      path = matched.route.path;
      const whenOver = (done: () => void): void => watch.whenOver(done);
      const asked = router.answer(matched, { request: innerRequest(call), signal, whenOver });
      // One piece of work: what fails in it after its caller has gone is then nobody's unhandled rejection.
      const work = asked.then(async (reply) => {
        watch.endless = reply.type === 'late-json';
        return await wholeReply(reply, call.onHead);
      });
      const answer = await watch.unlessAborted(work);
      status = answer.status;
      return answer;
    } catch (error) {
      call.signal?.throwIfAborted();
      if (watch.signal.aborted) throw new SallyportError('daemon_stopping', 'the daemon is stopping');
      const shown = presentable(error);
      if (shown.kind === 'internal') log.error('a request failed', { route: path, error });
      status = statusOf(shown);
      return innerAnswer(status, errorBody(shown));
    } finally {
      watch.end();
      this.#running.delete(watch);
      observer.answered(path, call.method, status);
      onActivity();
    }
  }

  /** Takes no new connections, ends what never ends by itself, and waits for the rest. */
  async drain(waitMs: number): Promise<void> {
    for (const server of this.#servers) server.close();
    const stopping = new DaemonStopping();
    for (const { endless, abort } of this.#running) if (endless) abort(stopping);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), waitMs);
    const all = Promise.all([...this.#running].map(({ over }) => over)).then(() => {});
    await Promise.race([all, once(late.signal, 'abort')]);
    clearTimeout(timer);
    for (const server of this.#servers) server.closeAllConnections();
  }

  async #serve(
    request: IncomingMessage,
    response: ServerResponse,
    authenticate: Authenticate,
  ): Promise<void> {
    const { router, log, observer, onActivity } = this.#options;
    const { method = 'GET', url = '/' } = request;
    const controller = new AbortController();
    const atTheEnd: (() => void)[] = [];
    let matched: Matched<Route> | undefined;
    let endless = false;
    let mayEndEarly = false;
    const over = new Promise<void>((resolve) => {
      response.once('close', () => {
        if (!response.writableFinished) controller.abort(new Error('the client is gone'));
        for (const done of atTheEnd) done();
        observer.answered(matched?.route.path ?? 'unknown', method, response.statusCode);
        this.#running.delete(running);
        onActivity();
        resolve();
      });
    });
    const running: Running = {
      get endless() {
        return endless;
      },
      abort: (reason) => {
        controller.abort(reason);
        // An answer that is cut short must not look whole.
        if (mayEndEarly) response.end();
        else response.destroy();
      },
      over,
    };
    this.#running.add(running);
    onActivity();
    try {
      admitted(request, response, authenticate);
      matched = router.match(method, url);
      const reply = await router.answer(matched, {
        request,
        signal: controller.signal,
        whenOver: (done) => void (response.closed ? done() : atTheEnd.push(done)),
      });
      mayEndEarly = reply.type === 'events';
      endless = mayEndEarly || reply.type === 'late-json' || (reply.type === 'bytes' && !reply.eager);
      await sendReply(response, reply, controller.signal);
    } catch (error) {
      if (controller.signal.aborted) {
        if (!mayEndEarly) response.destroy();
        return;
      }
      const shown = presentable(error);
      if (shown.kind === 'internal')
        log.error('a request failed', { route: matched?.route.path ?? 'unknown', error });
      sendError(response, shown);
    }
  }

  async #upgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    authenticate: Authenticate,
  ): Promise<void> {
    const { router, log, observer, onActivity } = this.#options;
    const atTheEnd: (() => void)[] = [];
    const release = (): void => {
      for (const done of atTheEnd.splice(0)) done();
    };
    let path = 'unknown';
    socket.on('error', () => socket.destroy());
    // Also when the client leaves, or is refused, before there is a WebSocket.
    socket.once('close', release);
    try {
      authenticate(request);
      const { route, params, rawQuery } = router.matchSocket(request.url ?? '/');
      path = route.path;
      router.admit(request);
      const query = readQuery(route.query, rawQuery);
      const sandbox = router.heldSandbox(params['sandbox'] ?? '', (done) => void atTheEnd.push(done));
      await sandbox.recovered;
      const converse = await route.open({ params, query, sandbox });
      this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => {
        const controller = new AbortController();
        const gone = once(webSocket, 'close').then(
          () => {},
          () => {},
        );
        const running: Running = {
          endless: true,
          abort: (reason) => {
            controller.abort(reason);
            webSocket.close(closeGoingAway, 'the daemon is stopping');
          },
          over: gone,
        };
        this.#running.add(running);
        onActivity();
        webSocket.on('error', () => webSocket.terminate());
        void converse(webSocket, controller.signal).catch((error: unknown) => {
          if (!controller.signal.aborted) log.error('a conversation failed', { route: path, error });
          webSocket.close(1011, 'failed');
        });
        void gone.then(() => {
          controller.abort(new Error('the client is gone'));
          release();
          this.#running.delete(running);
          onActivity();
        });
        observer.answered(path, 'GET', 101);
      });
    } catch (error) {
      release();
      const shown = presentable(error);
      if (shown.kind === 'internal') log.error('a handshake failed', { route: path, error });
      const status = statusOf(shown);
      refuseUpgrade(socket, status, JSON.stringify(errorBody(shown)));
      observer.answered(path, 'GET', status);
    }
  }
}

/** SECURITY: a stranger's connection ends with the refusal, so that strangers do not hold every connection of the port. */
function admitted(request: IncomingMessage, response: ServerResponse, authenticate: Authenticate): void {
  try {
    authenticate(request);
  } catch (error) {
    response.setHeader('connection', 'close');
    throw error;
  }
}
