/**
 * One request and its answer, whichever protocol the client speaks: judged, given its credentials, dialled, sent, answered,
 * reported. Bodies pass as they come; nothing is collected. It never sends a byte that was not judged before.
 */

import { plainRequestPath } from '../../policy/egress/request-path.ts';
import type { Allowed, Attempt, Decision, Destination, EgressSession, Entrance } from '../contract.ts';
import type { RequestBudget } from '../request-budget.ts';
import { BodyWriter, gather, readBody, writeTo } from './body.ts';
import { StreamEnded } from './byte-reader.ts';
import type { PreparedRequest, RequestCredentials } from './credential-port.ts';
import { CredentialRefused, type Refusal, refusalOfDenied, refusalOfError } from './denial.ts';
import { type Framing, responseFraming } from './framing.ts';
import { type ResponseHead, writeHead } from './head.ts';
import { endToEnd, Headers } from './headers.ts';
import { MessageRoom } from './message-room.ts';
import { withoutOverrides } from './override-headers.ts';
import { Pauses } from './pauses.ts';
import { readResponseHead } from './read-heads.ts';
import { isAmbiguousPath } from './target.ts';
import { openUpstream, type Upstream, type UpstreamTls } from './upstream.ts';
import { leavesNoLogin, type UpstreamPool } from './upstream-pool.ts';
import { HttpViolation } from './violation.ts';
import { acceptFor } from './web-socket-key.ts';

export interface ExchangeOptions {
  readonly entrance: Entrance;
  readonly credentials?: RequestCredentials;
  readonly upstreamTls?: UpstreamTls;
  /** Of the sandbox. Absent: connections end with the client's. */
  readonly pool?: UpstreamPool;
  /** Of the sandbox. */
  readonly budget?: RequestBudget;
  readonly signal: AbortSignal;
}

export interface ClientRequest {
  readonly method: string;
  readonly path: string;
  readonly scheme: 'http' | 'https';
  readonly destination: Destination;
  /** End to end, without Host and without framing. */
  readonly headers: Headers;
  /** As the server is to read it in Host. */
  readonly authority: string;
  readonly framing: Framing;
  readonly body: AsyncIterable<Buffer>;
  /** Nobody waits for the answer any more. */
  readonly signal?: AbortSignal;
  /** The key of a WebSocket that the client wants to open. */
  readonly webSocketKey?: string;
}

/** The client's side of the answer. */
export interface Answer {
  /** True once a final head went out: from then on a failure can only cut the connection. */
  readonly begun: boolean;
  interim(head: ResponseHead): Promise<void>;
  begin(status: number, reason: string, headers: Headers, framing: Framing): Promise<void>;
  piece(bytes: Buffer): Promise<void>;
  end(): Promise<void>;
  refuse(refusal: Refusal, destination: Destination, rule?: string): Promise<void>;
  /** The server agreed to a WebSocket: from here on bytes pass, those of the server as `answered`, until both sides are done. */
  switchTo(
    head: ResponseHead,
    upstream: Upstream,
    answered: AsyncIterable<Buffer>,
    count: ByteCount,
  ): Promise<void>;
}

export interface ByteCount {
  out: number;
  in: number;
}

/** `over`: the client's connection must not be used for another request. */
export type ExchangeEnd = 'next' | 'over';

/** A server closes idle connections: a request that cannot be sent twice does not go out on one that rested for long. */
const restedTooLongMs = 4000;
const mostKept = 6;

export class Exchanges {
  readonly #session: EgressSession;
  readonly #options: ExchangeOptions;
  /** Connections that can be used again; with HTTP/2 several requests go at once. */
  readonly #kept: Upstream[] = [];
  readonly #busy = new Set<Upstream>();

  constructor(session: EgressSession, options: ExchangeOptions) {
    this.#session = session;
    this.#options = options;
  }

  /** Cuts what is under way, too. */
  close(): void {
    const { pool, signal } = this.#options;
    for (const upstream of this.#busy) upstream.close();
    for (const upstream of this.#kept.splice(0)) {
      if (pool === undefined || signal.aborted) upstream.close();
      else pool.give(upstream);
    }
  }

  async perform(request: ClientRequest, answer: Answer): Promise<ExchangeEnd> {
    const leave = await this.#options.budget?.enter(request.signal);
    try {
      return await this.#perform(request, answer);
    } finally {
      leave?.();
    }
  }

  async #perform(request: ClientRequest, answer: Answer): Promise<ExchangeEnd> {
    const from = performance.now();
    const count: ByteCount = { out: 0, in: 0 };
    const { method, path, scheme, destination } = request;
    const attempt: Attempt = { entrance: this.#options.entrance, destination, scheme, method, path };
    const decision = this.#session.decide(attempt);
    const report = (decided: Decision, extra: { status?: number; error?: string }): void =>
      this.#session.report({
        decision: decided,
        bytesOut: count.out,
        bytesIn: count.in,
        durationMs: performance.now() - from,
        ...extra,
      });
    if (!decision.allowed) {
      // First on record, then answered: who was refused finds it there, and one that left before the answer stays in it.
      report(decision, { status: 403 });
      await answer.refuse(refusalOfDenied(decision), destination);
      return request.framing.kind === 'none' ? 'next' : 'over';
    }
    try {
      const judged = this.#unambiguous(request, decision);
      const prepared = await this.#options.credentials?.prepare(judged);
      const { end, status } = await this.#pass(judged, decision, prepared, answer, count);
      report(decision, { status });
      return end;
    } catch (error) {
      const refusal = refusalOfError(error);
      const { begun } = answer;
      report(judged(error) ? denied(attempt, refusal) : decision, {
        ...(begun ? {} : { status: refusal.status }),
        error: refusal.code,
      });
      // The client learns of it by a status, or, when the answer is under way, by its connection being cut.
      if (!begun) await answer.refuse(refusal, destination, decision.rule).catch(() => {});
      return begun || request.framing.kind !== 'none' ? 'over' : 'next';
    }
  }

  /** Throws where the server could take the request for another one than was judged. */
  #unambiguous(request: ClientRequest, decision: Allowed): ClientRequest {
    const { credentials } = this.#options;
    const { path, destination } = request;
    const bySecret = credentials?.goesByPath(destination) === true;
    const isSeen = decision.inspect || credentials?.applies(destination) === true;
    // Paths that rules go by are judged with the rules.
    if ((bySecret && plainRequestPath(path) === undefined) || (isSeen && isAmbiguousPath(path))) {
      throw new HttpViolation('ambiguous_path', 'servers disagree about this path, so no rule can judge it');
    }
    const byRequest = bySecret || decision.byRequest === true;
    return byRequest ? { ...request, headers: withoutOverrides(request.headers) } : request;
  }

  async #pass(
    request: ClientRequest,
    decision: Allowed,
    prepared: PreparedRequest | undefined,
    answer: Answer,
    count: ByteCount,
  ): Promise<{ readonly end: ExchangeEnd; readonly status: number }> {
    const { upstream, head, sending } = await this.#ask(request, decision, prepared, answer, count);
    let keep = false;
    try {
      if (head.status === 101) {
        await sending.done;
        const bytes = upstream.reader.pieces();
        const room = this.#options.budget?.messages ?? new MessageRoom();
        const answered = prepared?.mask?.webSocket(head, bytes, room) ?? bytes;
        await answer.switchTo(head, upstream, answered, count);
        return { end: 'over', status: 101 };
      }
      const framing = responseFraming(head, request.method);
      const sent = prepared?.headers ?? request.headers;
      if (!leavesNoLogin(sent) || !leavesNoLogin(head.headers)) upstream.isShareable = false;
      await this.#answer(head, framing, upstream, prepared, answer, count);
      // An answer before the whole request is there: the rest of it is nobody's any more.
      const complete = sending.state === 'sent';
      keep = complete && framing.kind !== 'until-close' && wantsMore(head);
      return { end: complete ? 'next' : 'over', status: head.status };
    } catch (error) {
      throw sending.failure ?? error;
    } finally {
      this.#release(upstream, request);
      if (keep && upstream.usable) this.#keep(upstream);
      else upstream.close();
    }
  }

  /** Sends the request and reads up to the head of the final answer. */
  async #ask(
    request: ClientRequest,
    decision: Allowed,
    prepared: PreparedRequest | undefined,
    answer: Answer,
    count: ByteCount,
  ): Promise<{ readonly upstream: Upstream; readonly head: ResponseHead; readonly sending: Sending }> {
    const again = request.framing.kind === 'none';
    const kept = this.#take(request.destination, again) ?? this.#takeShared(request);
    const upstream = kept ?? (await this.#open(decision, request.signal));
    this.#busy.add(upstream);
    request.signal?.addEventListener('abort', upstream.close, { once: true });
    const sending = send(request, prepared, upstream, count, this.#options.budget);
    try {
      return { upstream, sending, head: await this.#finalHead(request, upstream, prepared, answer) };
    } catch (error) {
      this.#release(upstream, request);
      upstream.close();
      if (sending.failure !== undefined) throw sending.failure;
      // It was closed while it rested. Nothing was answered, and the request has no body: it may be sent once more.
      if (kept !== undefined && again && !answer.begun && isConnectionLoss(error)) {
        return await this.#ask(request, decision, prepared, answer, count);
      }
      throw error;
    }
  }

  /** Masked, as are the interim ones before it. */
  async #finalHead(
    request: ClientRequest,
    upstream: Upstream,
    prepared: PreparedRequest | undefined,
    answer: Answer,
  ): Promise<ResponseHead> {
    for (;;) {
      const seen = await readResponseHead(upstream.reader);
      if (seen === undefined) throw new StreamEnded('the server closed the connection');
      const head = prepared?.mask?.head(seen) ?? seen;
      if (head.status === 101) {
        const { webSocketKey } = request;
        if (
          webSocketKey === undefined ||
          head.headers.get('sec-websocket-accept') !== acceptFor(webSocketKey)
        ) {
          throw new HttpViolation('bad_response', 'the server switched protocols without being asked');
        }
        return head;
      }
      if (head.status >= 200) return head;
      await answer.interim(head);
    }
  }

  async #answer(
    head: ResponseHead,
    framing: Framing,
    upstream: Upstream,
    prepared: PreparedRequest | undefined,
    answer: Answer,
    count: ByteCount,
  ): Promise<void> {
    const kept = framing.kind === 'none' ? head.headers : head.headers.without(new Set(['content-length']));
    const headers = endToEnd(kept);
    const shown = prepared?.mask?.body(head, headers, framing) ?? { headers, framing, pieces: undefined };
    await answer.begin(head.status, head.reason, shown.headers, shown.framing);
    const pauses = new Pauses();
    const body = readBody(upstream.reader, framing, 'bad_response', pauses.chunkEnded);
    for await (const piece of shown.pieces?.(body, pauses) ?? body) {
      count.in += piece.length;
      await answer.piece(piece);
    }
    await answer.end();
  }

  async #open(decision: Allowed, unwanted: AbortSignal | undefined): Promise<Upstream> {
    const { upstreamTls = {}, signal } = this.#options;
    const either = unwanted === undefined ? signal : AbortSignal.any([signal, unwanted]);
    return await openUpstream(this.#session, decision, upstreamTls, either);
  }

  /** From here on it may be another request's. */
  #release(upstream: Upstream, { signal }: ClientRequest): void {
    this.#busy.delete(upstream);
    signal?.removeEventListener('abort', upstream.close);
  }

  #take({ host, port }: Destination, again: boolean): Upstream | undefined {
    for (;;) {
      const kept = this.#kept.pop();
      if (kept === undefined) return undefined;
      const rested = performance.now() - kept.idleSinceMs;
      const same = kept.destination.host === host && kept.destination.port === port;
      if (same && kept.usable && (again || rested < restedTooLongMs)) return kept;
      kept.close();
    }
  }

  /** Only for what may go out a second time: a server may close it at any moment. */
  #takeShared({ destination, scheme, method, framing }: ClientRequest): Upstream | undefined {
    const mayRepeat = framing.kind === 'none' && (method === 'GET' || method === 'HEAD');
    return mayRepeat ? this.#options.pool?.take(destination, scheme) : undefined;
  }

  #keep(upstream: Upstream): void {
    upstream.idleSinceMs = performance.now();
    this.#kept.push(upstream);
    if (this.#kept.length > mostKept) this.#kept.shift()?.close();
  }
}

interface Sending {
  readonly done: Promise<void>;
  readonly state: 'sending' | 'sent' | 'failed';
  /** Why the request did not go out, if that was no loss of the connection. */
  readonly failure: Error | undefined;
}

/** Goes on beside the answer: a server may answer first, and `Expect: 100-continue` depends on it. */
function send(
  request: ClientRequest,
  prepared: PreparedRequest | undefined,
  upstream: Upstream,
  count: ByteCount,
  budget: RequestBudget | undefined,
): Sending {
  const sending: { done: Promise<void>; state: Sending['state']; failure: Error | undefined } = {
    done: Promise.resolve(),
    state: 'sending',
    failure: undefined,
  };
  // The answer may be over before the request is: then nobody wants the rest of it.
  const gone = new AbortController();
  const leave = (): void => gone.abort();
  upstream.stream.once('close', leave);
  const run = async (): Promise<void> => {
    const head = writeHead(`${request.method} ${request.path} HTTP/1.1`, sentHeaders(request, prepared));
    count.out += head.length;
    gather(upstream.stream);
    await writeTo(upstream.stream, head);
    const writer = new BodyWriter(upstream.stream, request.framing);
    const options = { budget, signal: gone.signal };
    for await (const piece of prepared?.checkBody(request.body, options) ?? request.body) {
      count.out += piece.length;
      await writer.write(piece).catch((cause: unknown) => {
        throw new ServerStopped('the server takes no more of the request', { cause });
      });
    }
    await writer.end();
  };
  sending.done = run().then(
    () => {
      sending.state = 'sent';
      upstream.stream.off('close', leave);
    },
    (error: unknown) => {
      sending.state = 'failed';
      upstream.stream.off('close', leave);
      // Such a server may have answered already, and that answer counts.
      if (error instanceof ServerStopped) return;
      if (error instanceof HttpViolation || error instanceof CredentialRefused) sending.failure = error;
      // Whoever waits for the answer learns of it by this.
      upstream.close();
    },
  );
  return sending;
}

class ServerStopped extends Error {}

function sentHeaders(request: ClientRequest, prepared: PreparedRequest | undefined): Headers {
  const { framing, authority, webSocketKey } = request;
  const own: [string, string][] = [['Host', authority]];
  if (framing.kind === 'chunked') own.push(['Transfer-Encoding', 'chunked']);
  if (framing.kind === 'length') own.push(['Content-Length', String(framing.bytes)]);
  // A POST without a body says so; others would be asked for one by some servers.
  else if (framing.kind === 'none' && request.headers.has('content-length'))
    own.push(['Content-Length', '0']);
  if (webSocketKey !== undefined) own.push(['Connection', 'Upgrade'], ['Upgrade', 'websocket']);
  const headers = (prepared?.headers ?? request.headers).without(new Set(['host', 'content-length']));
  return new Headers([...own, ...headers.fields]);
}

function wantsMore({ version, headers }: ResponseHead): boolean {
  const said = headers.tokens('connection');
  return version === '1.1' ? !said.includes('close') : said.includes('keep-alive');
}

function isConnectionLoss(error: unknown): boolean {
  if (error instanceof StreamEnded) return true;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ECONNRESET' || code === 'EPIPE' || code === 'ERR_STREAM_PREMATURE_CLOSE';
}

/** Refused by the gate, and not failed on the way. */
const judged = (error: unknown): boolean =>
  (error instanceof HttpViolation && error.code !== 'bad_response') || error instanceof CredentialRefused;

const denied = (attempt: Attempt, { code, message, advice }: Refusal): Decision => ({
  allowed: false,
  attempt,
  code,
  reason: message,
  advice,
});
