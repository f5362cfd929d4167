/**
 * The running daemon: routes behind its sockets, its figures, its end. What it works with is handed in by `main.ts`.
 *
 * It ends once, by whoever asks first: nothing new is taken, the sandboxes are stopped or let go, what is under way is
 * answered, and then `stopped` resolves.
 */

import { chmod, rm } from 'node:fs/promises';
import { deferred } from '../lib/deferred.ts';
import type { BoxRequest } from '../protocol/box.ts';
import { socketPathProblem } from '../protocol/socket-path.ts';
import type { SandboxState } from '../protocol/states.ts';
import type { HealthView } from '../protocol/views.ts';
import type { BoxHome } from '../sandboxes/ports.ts';
import { type ListenAddress, socketAuthentication, tokenAuthentication } from './auth.ts';
import { Browsers } from './browser/browsers.ts';
import { DaemonMetrics } from './daemon-metrics.ts';
import type { DescribedBox } from './engine-parts.ts';
import { execStreamRoute } from './exec-stream.ts';
import { HttpServer } from './http-server.ts';
import { IdleStop } from './idle-stop.ts';
import type { ImageSurface } from './image-surface.ts';
import type { InnerAnswer, InnerCall } from './inner-call.ts';
import type { Logger } from './logger.ts';
import type { McpEndpoint } from './mcp/mcp-endpoint.ts';
import { openApi } from './openapi.ts';
import type { Previews } from './previews/previews.ts';
import { RecentCreates } from './recent-creates.ts';
import { Router } from './router.ts';
import { allRoutes } from './routes/all.ts';
import type { GuardSurface, SandboxesSurface, SecretsSurface } from './surface.ts';

export interface DaemonParts {
  readonly sandboxes: SandboxesSurface;
  readonly secrets: SecretsSurface;
  readonly images: ImageSurface;
  readonly previews: Previews;
  readonly guard: GuardSurface;
  readonly mcp: McpEndpoint;
  readonly log: Logger;
  readonly version: string;
  readonly owner: string;
  /** Of the engine: `protocol/engine-environment.ts`. */
  readonly engineKey: string;
  readonly engine: { readonly name: string; readonly endpoint: string; readonly version: string };
  readonly idleMs: number;
  readonly describeBox: (box: BoxRequest, home: BoxHome) => Promise<DescribedBox>;
}

const socketRoutes = [execStreamRoute];
/** What is under way when the daemon stops has so long to come to its end. */
const drainMs = 10_000;
const quietStates: ReadonlySet<SandboxState> = new Set(['STOPPED', 'FAILED', 'DELETED']);

export function describeApi(version: string): Readonly<Record<string, unknown>> {
  return openApi(allRoutes, socketRoutes, version);
}

export class Daemon {
  readonly #parts: DaemonParts;
  readonly #metrics: DaemonMetrics;
  readonly #http: HttpServer;
  readonly #idle: IdleStop;
  readonly #startedAt = new Date().toISOString();
  readonly #counting = new AbortController();
  readonly #browsers = new Browsers();
  readonly #stopped = deferred<void>();
  /** Before that nobody can have asked for anything. */
  #listens = false;
  #shutdown: Promise<void> | undefined;

  constructor(parts: DaemonParts) {
    this.#parts = parts;
    const { sandboxes, images, version, engineKey, describeBox, log, idleMs } = parts;
    this.#metrics = new DaemonMetrics(sandboxes);
    const router = new Router({
      routes: allRoutes,
      socketRoutes,
      version,
      engineKey,
      isStopping: () => this.#shutdown !== undefined,
      services: {
        sandboxes,
        secrets: parts.secrets,
        images,
        previews: parts.previews,
        browsers: this.#browsers,
        guard: parts.guard,
        mcp: parts.mcp,
        creates: new RecentCreates(),
        describeBox,
        health: () => this.#health(),
        metricsText: () => this.#metrics.text(),
        openApi: () => describeApi(version),
        shutdown: (keep) => this.stop(keep),
      },
    });
    this.#idle = new IdleStop({
      idleMs,
      isInUse: () =>
        !this.#listens ||
        this.#http.isBusy ||
        parts.mcp.isOpen ||
        sandboxes.list().some(({ state, isElsewhere }) => !isElsewhere && !quietStates.has(state)),
      stop: () => {
        log.info('nobody needs this daemon: it stops');
        void this.stop(true);
      },
    });
    this.#http = new HttpServer({
      router,
      log,
      observer: this.#metrics,
      onActivity: () => this.#idle.touch(),
    });
    this.#metrics
      .follow(this.#counting.signal)
      .catch((error: unknown) => log.error('events are no longer counted', { error }));
  }

  /** Resolves when nothing is left to do but to end the process. */
  get stopped(): Promise<void> {
    return this.#stopped.promise;
  }

  /** The caller holds the lock of the state folder: a socket that is there belongs to nobody. */
  async listenOnSocket(path: string): Promise<void> {
    const problem = socketPathProblem(path);
    if (problem !== undefined) throw problem;
    await rm(path, { force: true });
    await this.#http.listen({ path }, socketAuthentication);
    await chmod(path, 0o600);
    this.#listens = true;
  }

  /** For the daemon's own client: as the Unix socket answers. */
  async ask(call: InnerCall): Promise<InnerAnswer> {
    return await this.#http.ask(call);
  }

  /** Returns the port, which the system chooses where 0 was asked for. */
  async listenOnPort({ host, port }: ListenAddress, token: string): Promise<number> {
    const server = await this.#http.listen({ host, port }, tokenAuthentication(token));
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : port;
  }

  /** Resolves when the sandboxes are stopped or let go. */
  async stop(keep: boolean): Promise<void> {
    if (this.#shutdown === undefined) {
      this.#idle.close();
      this.#parts.guard.approvals.close();
      this.#parts.mcp.close();
      this.#shutdown = this.#parts.sandboxes.shutdown(keep);
      void this.#end(this.#shutdown);
    }
    await this.#shutdown;
  }

  async #end(shutdown: Promise<void>): Promise<void> {
    const { log } = this.#parts;
    await shutdown.catch((error: unknown) => log.error('not all sandboxes could be stopped', { error }));
    await this.#parts.previews.close();
    this.#browsers.close();
    await this.#http.drain(drainMs);
    this.#counting.abort();
    this.#stopped.resolve();
  }

  async #health(): Promise<HealthView> {
    const { version, owner, engine, engineKey, sandboxes } = this.#parts;
    const states: Record<string, number> = {};
    for (const { state } of sandboxes.list()) states[state] = (states[state] ?? 0) + 1;
    return {
      version,
      api: 'v1',
      pid: process.pid,
      owner,
      started_at: this.#startedAt,
      engine: { ...engine, reachable: await sandboxes.engineReachable() },
      engine_key: engineKey,
      sandboxes: states,
      sequence: sandboxes.events.sequence,
    };
  }
}
