/**
 * Calls to the daemon of an engine: starts it where it is missing, replaces one that is older, and turns its answers into values
 * and errors. A request that may have taken effect is never sent twice. A sandbox that another engine holds is found by its name
 * or id, and the call goes to that engine's daemon.
 */

import type { IncomingMessage } from 'node:http';
import { rememberedEngine } from '../lib/engine-choice.ts';
import { engineFolderPath, readEngineFolder } from '../lib/engine-folders.ts';
import { packageInfo } from '../lib/package-root.ts';
import { type Progress, silent } from '../lib/progress.ts';
import { runningPrograms } from '../lib/running-programs.ts';
import { clientHeader, writeClientHeader } from '../protocol/client-header.ts';
import { bubblewrapChoice, type EngineChoice, type EngineName } from '../protocol/engine-environment.ts';
import { type ErrorCode, isSallyportError, SallyportError } from '../protocol/errors.ts';
import { type ClientEnvironment, readClientEnvironment } from './config.ts';
import { answers, ensureDaemon, replaceDaemon, untilGone } from './connect-daemon.ts';
import { type Answers, DaemonPlace } from './daemon-place.ts';
import { NotThere } from './lost-connection.ts';
import { type Call, readAll } from './transport.ts';
import { ClientWebSocket } from './web-socket.ts';
import type { WholeCall } from './whole-answers.ts';
import { errorFromWire, isWireError } from './wire-error.ts';

export interface ConnectionOptions {
  /** Where state is kept. Absent: SALLYPORT_STATE_DIR, or the default. */
  readonly stateDir?: string;
  /** Which engine's daemon to use. Absent or `auto`: the one that the environment names (DOCKER_HOST, SALLYPORT_ENGINE …). */
  readonly engine?: EngineName;
  /** False: sandboxes of other engines are not found, whatever their names. */
  readonly otherEngines?: boolean;
  /** False: a daemon that is not there is an error, and is not started. */
  readonly startDaemon?: boolean;
  /** True: use the daemon of the first engine of the state folder, also if the environment names another one. */
  readonly anyEngine?: boolean;
  /** Called while a daemon that is started here starts an engine, with each step. */
  readonly onProgress?: Progress;
  /** The version that the client reports. Absent: that of this package. */
  readonly version?: string;
}

/** For callers inside this package. */
export interface InternalOptions {
  readonly answers?: Answers;
  /** The daemon of this engine, and no other. */
  readonly choice?: EngineChoice;
}

export type QueryValues = Readonly<
  Record<string, string | number | boolean | Uint8Array | readonly string[] | undefined>
>;

export interface CallOptions {
  readonly query?: QueryValues;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** False: a sandbox that this engine does not have is an error, also if another one has it. */
  readonly otherEngines?: boolean;
}

/** A daemon that ends under a call takes two of them: the call that is cut off, and the one that finds nobody. */
const mostAttempts = 8;

/** Where the sandbox may still be with another engine. */
const notHere: readonly ErrorCode[] = ['sandbox_not_found', 'engine_unreachable', 'engine_not_chosen'];

export class DaemonClient {
  readonly #environment: ClientEnvironment;
  readonly #choice: EngineChoice;
  readonly #fixedFolder: string | undefined;
  readonly #version: string;
  readonly #sendsKey: boolean;
  readonly #seeksElsewhere: boolean;
  readonly #progress: Progress;
  readonly #places = new Map<string, DaemonPlace>();
  /** Clients of other engines, by the names and ids of their sandboxes. */
  readonly #elsewhere = new Map<string, DaemonClient>();
  /** The same by the keys of their engines. */
  readonly #others = new Map<string, DaemonClient>();
  /** A closed client starts no daemon, and ends one that it is starting. */
  readonly #closed = new AbortController();
  #at: DaemonPlace;
  #mayStart: boolean;
  #starting: Promise<void> | undefined;

  constructor(options: ConnectionOptions = {}, internal: InternalOptions = {}) {
    const read = readClientEnvironment();
    const stateDir = options.stateDir ?? read.stateDir;
    this.#environment = { ...read, stateDir };
    const isAny = options.anyEngine === true;
    const first = isAny ? readEngineFolder(stateDir) : undefined;
    this.#choice =
      internal.choice ??
      (first === undefined ? this.#environment.choose(options.engine) : { ...first, mayFallBack: false });
    this.#fixedFolder = isAny ? stateDir : undefined;
    this.#mayStart = options.startDaemon ?? true;
    this.#progress = options.onProgress ?? silent;
    this.#version = options.version ?? packageInfo().version;
    this.#sendsKey = !isAny;
    const isInternal = internal.choice !== undefined || internal.answers !== undefined;
    this.#seeksElsewhere = options.otherEngines !== false && !isAny && !isInternal;
    this.#at = this.#place(this.#choice, internal.answers);
  }

  /** The state folder of the engine whose daemon this client uses. */
  get folder(): string {
    return this.#at.folder;
  }

  /** The client of the daemon that has the sandbox; this one, if none has it. Closed with this one. */
  async holderOf(sandbox: string, signal?: AbortSignal): Promise<DaemonClient> {
    const path = `/v1/sandboxes/${segment(sandbox)}`;
    await this.json('GET', path, signal === undefined ? {} : { signal }).catch((error: unknown) => {
      if (!isSallyportError(error, 'sandbox_not_found')) throw error;
    });
    return this.#clientFor(sandbox);
  }

  /** Creates a sandbox with the engine that its spec names; later calls about the sandbox go there too. */
  async createSandbox<T extends { readonly id: string; readonly name: string }>(
    body: {
      readonly spec?: { readonly engine?: EngineName | undefined; readonly workspace?: unknown } | undefined;
    },
    options: Omit<CallOptions, 'body'> = {},
  ): Promise<T> {
    const client = this.#forEngine(body.spec?.engine);
    // SECURITY: a sandbox that could write to them would be this program from the next call on.
    const programs = body.spec?.workspace === undefined ? {} : { programs: runningPrograms() };
    const made = await client.json<T>('POST', '/v1/sandboxes', {
      ...options,
      body: { ...body, ...programs },
    });
    for (const reference of [made.id, made.name]) {
      if (client === this) this.#elsewhere.delete(reference);
      else this.#elsewhere.set(reference, client);
    }
    return made;
  }

  #forEngine(engine: EngineName | undefined): DaemonClient {
    if (engine === undefined || engine === 'auto' || !this.#seeksElsewhere) return this;
    const choice = this.#environment.choose(engine);
    if (choice.key === this.#at.choice.key) return this;
    return this.#clientOf(choice);
  }

  /** `onHead`: what the head of the answer says, which may come long before the rest. */
  async json<T>(
    method: Call['method'],
    path: string,
    options: CallOptions & Pick<WholeCall, 'onHead'> = {},
  ): Promise<T> {
    return await this.#whereItIs(path, options, (client) => client.#json<T>(method, path, options));
  }

  async #json<T>(
    method: Call['method'],
    path: string,
    options: CallOptions & Pick<WholeCall, 'onHead'>,
  ): Promise<T> {
    const { onHead } = options;
    const call = { ...callOf(method, path, options), ...(onHead === undefined ? {} : { onHead }) };
    const { body } = await this.#attempt(call, mostAttempts, async (told) => {
      const answer = await this.#at.answers.ask(told);
      if (!isSuccess(answer.status)) throw refusal(answer.status, answer.body);
      return answer;
    });
    return (body.length === 0 ? undefined : JSON.parse(body.toString('utf8'))) as T;
  }

  /** The answer as it comes, if it is a success. */
  async open(method: Call['method'], path: string, options: CallOptions = {}): Promise<IncomingMessage> {
    return await this.#whereItIs(path, options, (client) =>
      client.#attempt(callOf(method, path, options), mostAttempts, client.#stream),
    );
  }

  /** The body can be sent only once, so this ensures first that a daemon answers and has the sandbox. */
  async upload<T>(
    path: string,
    content: Buffer | AsyncIterable<Uint8Array>,
    options: CallOptions & { readonly contentType: string },
  ): Promise<T> {
    const { query, signal, contentType } = options;
    const sandbox = sandboxIn(path);
    const client = sandbox === undefined ? this : await this.holderOf(sandbox, signal);
    if (sandbox === undefined) await this.json('GET', '/v1/health', signal === undefined ? {} : { signal });
    const answer = await client.#attempt(
      {
        method: 'PUT',
        path: withQuery(path, query),
        headers: { 'content-type': contentType },
        body: content,
        ...(signal === undefined ? {} : { signal }),
      },
      1,
      client.#stream,
    );
    return JSON.parse((await readAll(answer)).toString('utf8')) as T;
  }

  /** A WebSocket that is not open yet. */
  socket(path: string, query: QueryValues): ClientWebSocket {
    const client = this.#clientFor(sandboxIn(path, query));
    return new ClientWebSocket({
      socketPath: client.#at.socketPath,
      path: withQuery(path, query),
      headers: { [clientHeader]: client.#words },
      mostMessageBytes: 16 * 2 ** 20,
    });
  }

  /** Stops the daemon; resolves when it takes no calls any more. One that does not run is no error. */
  async shutdown(options: { readonly keep?: boolean } = {}): Promise<void> {
    if (!(await answers(this.#at.transport))) await this.#moveToRunning();
    const { transport } = this.#at;
    const body = Buffer.from(JSON.stringify({ keep: options.keep ?? false }));
    try {
      const headers = { 'content-type': 'application/json' };
      await this.#checked(await transport.send({ method: 'POST', path: '/v1/shutdown', headers, body }));
    } catch (error) {
      if (!(error instanceof NotThere) && !isSallyportError(error, 'daemon_gone')) throw error;
    }
    await untilGone(transport);
  }

  /** Ensures that a daemon answers; `args` are for one that has to be started. */
  async ensure(signal?: AbortSignal, args: readonly string[] = []): Promise<void> {
    await this.#start(signal, args);
  }

  /** Releases the connections. Calls that are under way may end, and start no daemon any more. */
  close(): void {
    this.#mayStart = false;
    this.#closed.abort(new SallyportError('daemon_unreachable', 'the client was closed'));
    for (const place of this.#places.values()) place.close();
    for (const client of this.#others.values()) client.close();
  }

  readonly #stream = async (call: Call): Promise<IncomingMessage> =>
    await this.#checked(await this.#at.transport.send(call));

  get #words(): string {
    const version = this.#version;
    return writeClientHeader(this.#sendsKey ? { version, engineKey: this.#at.choice.key } : { version });
  }

  /** Sends the call here; where the sandbox it names is with another engine, there. */
  async #whereItIs<T>(
    path: string,
    options: CallOptions,
    send: (client: DaemonClient) => Promise<T>,
  ): Promise<T> {
    const { query, otherEngines } = options;
    const sandbox = sandboxIn(path, query);
    if (sandbox === undefined || otherEngines === false) return await send(this);
    const known = this.#clientFor(sandbox);
    try {
      return await send(known);
    } catch (error) {
      if (known !== this && isSallyportError(error, 'sandbox_not_found')) {
        // Removed there since: another engine may have one of this name by now.
        this.#elsewhere.delete(sandbox);
        return await this.#whereItIs(path, options, send);
      }
      if (known !== this || !notHere.some((code) => isSallyportError(error, code))) throw error;
      const found = await this.#seek(sandbox);
      if (found === undefined) throw error;
      return await send(found);
    }
  }

  #clientFor(sandbox: string | undefined): DaemonClient {
    return (sandbox === undefined ? undefined : this.#elsewhere.get(sandbox)) ?? this;
  }

  async #seek(sandbox: string): Promise<DaemonClient | undefined> {
    if (!this.#seeksElsewhere) return undefined;
    const { findElsewhere } = await import('./other-engines.ts');
    const found = findElsewhere(this.#environment.stateDir, this.#at.folder, sandbox);
    if (found === undefined) return undefined;
    const client = this.#clientOf(found.folder);
    for (const reference of [sandbox, found.id, found.name]) this.#elsewhere.set(reference, client);
    return client;
  }

  #clientOf(engine: Pick<EngineChoice, 'key' | 'variables'>): DaemonClient {
    const known = this.#others.get(engine.key);
    if (known !== undefined) return known;
    const options = {
      stateDir: this.#environment.stateDir,
      startDaemon: this.#mayStart,
      onProgress: this.#progress,
      version: this.#version,
    };
    const client = new DaemonClient(options, { choice: { ...engine, mayFallBack: false } });
    this.#others.set(engine.key, client);
    return client;
  }

  /** The daemon of an engine. Its folder is looked up each time: the first daemon to start claims the state folder. */
  #place(choice: EngineChoice, own?: Answers): DaemonPlace {
    const folder = this.#fixedFolder ?? engineFolderPath(this.#environment.stateDir, choice.key);
    const id = `${choice.key} ${folder}`;
    const known = this.#places.get(id);
    if (known !== undefined) return known;
    const place = new DaemonPlace(this.#environment, choice, folder, own);
    this.#places.set(id, place);
    return place;
  }

  async #attempt<C extends Call, A>(call: C, attempts: number, send: (call: C) => Promise<A>): Promise<A> {
    for (let left = attempts; ; left--) {
      try {
        return await send({ ...call, headers: { ...call.headers, [clientHeader]: this.#words } });
      } catch (error) {
        await this.#recover(call, error, left - 1);
      }
    }
  }

  /** Makes another attempt sensible, or throws. */
  async #recover(call: Call, error: unknown, left: number): Promise<void> {
    const { signal, method } = call;
    if (error instanceof NotThere) {
      if (left === 0) throw this.#unreachable(error);
      if (await this.#moveToRunning()) return;
      if (!this.#mayStart) throw this.#unreachable(error);
      await this.#start(signal);
    } else if (left === 0) {
      throw error;
    } else if (isSallyportError(error, 'daemon_outdated')) {
      if (!this.#mayStart) throw error;
      await replaceDaemon(this.#at, signal, this.#progress, this.#closed.signal);
    } else if (isSallyportError(error, 'daemon_stopping')) {
      if (!this.#mayStart) throw error;
      await untilGone(this.#at.transport, signal);
    } else if (isSallyportError(error, 'daemon_engine_differs')) {
      // The daemon of another engine claimed the folder after this client looked it up.
      const place = this.#place(this.#choice);
      if (place === this.#at) throw error;
      this.#at = place;
    } else if (!(isSallyportError(error, 'daemon_gone') && method === 'GET')) {
      throw error;
    }
  }

  #unreachable(cause: Error): SallyportError {
    const { socketPath } = this.#at;
    return new SallyportError('daemon_unreachable', `no daemon answers at ${socketPath}`, {
      details: { socket: socketPath },
      cause,
    });
  }

  /** The engine that the user chose for a machine without a container engine. */
  get #fallback(): EngineChoice | undefined {
    const { stateDir } = this.#environment;
    const mayUse = this.#choice.mayFallBack && rememberedEngine(stateDir) === bubblewrapChoice.key;
    return mayUse ? bubblewrapChoice : undefined;
  }

  /** True: another daemon that this client may use runs, and is used from now on. */
  async #moveToRunning(): Promise<boolean> {
    const fallback = this.#fallback;
    for (const choice of [this.#choice, ...(fallback === undefined ? [] : [fallback])]) {
      const place = this.#place(choice);
      if (place === this.#at || !(await answers(place.transport))) continue;
      this.#at = place;
      return true;
    }
    return false;
  }

  async #start(signal: AbortSignal | undefined, args: readonly string[] = []): Promise<void> {
    this.#starting ??= this.#startChosen(signal, args).finally(() => {
      this.#starting = undefined;
    });
    await this.#starting;
  }

  async #startChosen(signal: AbortSignal | undefined, args: readonly string[]): Promise<void> {
    const start = async (choice: EngineChoice): Promise<void> => {
      const closed = this.#closed.signal;
      this.#at = await ensureDaemon(() => this.#place(choice), signal, args, this.#progress, closed);
    };
    try {
      await start(this.#choice);
    } catch (error) {
      const fallback = this.#fallback;
      const isMissing =
        isSallyportError(error, 'engine_unreachable') || isSallyportError(error, 'engine_not_chosen');
      if (fallback === undefined || !isMissing) throw error;
      await start(fallback);
    }
  }

  async #checked(answer: IncomingMessage): Promise<IncomingMessage> {
    const status = answer.statusCode ?? 0;
    if (isSuccess(status)) return answer;
    throw refusal(status, await readAll(answer));
  }
}

function callOf(method: Call['method'], path: string, options: CallOptions) {
  const { body, headers, query, signal } = options;
  const json = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  return {
    method,
    path: withQuery(path, query),
    headers: { ...headers, ...(json === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(json === undefined ? {} : { body: json }),
    ...(signal === undefined ? {} : { signal }),
  };
}

/** The sandbox that a call is about: in its path, or in the query of events. */
function sandboxIn(path: string, query?: QueryValues): string | undefined {
  const inPath = /^\/v1\/sandboxes\/([^/?]+)/.exec(path)?.[1];
  if (inPath !== undefined) return decodeURIComponent(inPath);
  const inQuery = path === '/v1/events' ? query?.['sandbox'] : undefined;
  return typeof inQuery === 'string' ? inQuery : undefined;
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300;

function refusal(status: number, body: Buffer): SallyportError {
  const value = parse(body.toString('utf8'));
  if (isWireError(value)) return errorFromWire(value.error);
  return new SallyportError('internal', `the daemon answered with status ${status}`, { details: { status } });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

export const segment = (text: string): string => encodeURIComponent(text);

function withQuery(path: string, query: QueryValues = {}): string {
  const parts = Object.entries(query).flatMap(([name, value]) => {
    if (value === undefined) return [];
    const values = Array.isArray(value) ? (value as readonly string[]) : [value as string | Uint8Array];
    return values.map((one) => `${name}=${encode(one)}`);
  });
  return parts.length === 0 ? path : `${path}?${parts.join('&')}`;
}

const plain = /^[A-Za-z0-9\-._~/]$/;

/** Bytes, not characters: the name of a file need not be UTF-8. */
function encode(value: string | number | boolean | Uint8Array): string {
  const bytes = value instanceof Uint8Array ? value : Buffer.from(String(value));
  return Array.from(bytes, (byte) => {
    const character = String.fromCharCode(byte);
    return plain.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`;
  }).join('');
}
