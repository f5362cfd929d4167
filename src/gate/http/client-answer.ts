/** The answer to a client that speaks HTTP/1.1: heads and bodies on its connection, refusals, and the end of it. */

import net from 'node:net';
import type { Duplex } from 'node:stream';
import type { Destination } from '../contract.ts';
import { BodyWriter, gather, writeTo } from './body.ts';
import { type ByteReader, StreamEnded } from './byte-reader.ts';
import { type Refusal, refusalBody } from './denial.ts';
import type { Answer, ByteCount } from './exchange.ts';
import type { Framing } from './framing.ts';
import { type RequestHead, type ResponseHead, writeHead } from './head.ts';
import { endToEnd, Headers } from './headers.ts';
import { joinStreams } from './join-streams.ts';
import type { Upstream } from './upstream.ts';

/** A client that still sends gets so long, and may send so much, before its connection is cut under its answer. */
const lingerMs = 1000;
const lingerBytes = 2 ** 20;

export class ClientAnswer implements Answer {
  readonly #client: Duplex;
  readonly #reader: ByteReader;
  #request: RequestHead | undefined;
  #writer: BodyWriter | undefined;
  #begun = false;
  #isLast = false;
  #switched = false;
  #ended = false;

  constructor(client: Duplex, reader: ByteReader) {
    this.#client = client;
    this.#reader = reader;
  }

  asked(request: RequestHead): void {
    this.#request = request;
    const said = request.headers.tokens('connection');
    this.#isLast = request.version === '1.1' ? said.includes('close') : !said.includes('keep-alive');
  }

  get begun(): boolean {
    return this.#begun;
  }

  get isLast(): boolean {
    return this.#isLast;
  }

  async interim({ status, reason, headers }: ResponseHead): Promise<void> {
    // HTTP/1.0 knows no interim answers.
    if (this.#request?.version !== '1.1') return;
    await writeTo(this.#client, writeHead(`HTTP/1.1 ${status} ${reason}`, endToEnd(headers)));
  }

  async begin(status: number, reason: string, headers: Headers, framing: Framing): Promise<void> {
    this.#begun = true;
    const old = this.#request?.version === '1.0';
    const sent: Framing =
      framing.kind !== 'length' && framing.kind !== 'none' && !old ? { kind: 'chunked' } : framing;
    // To HTTP/1.0 a body without a length ends with the connection.
    if (old && framing.kind !== 'length' && framing.kind !== 'none') this.#isLast = true;
    const own: [string, string][] = [];
    if (sent.kind === 'length') own.push(['Content-Length', String(sent.bytes)]);
    if (sent.kind === 'chunked') own.push(['Transfer-Encoding', 'chunked']);
    if (sent.kind === 'none' && needsLength(status, this.#request) && !headers.has('content-length')) {
      own.push(['Content-Length', '0']);
    }
    own.push(['Connection', this.#isLast ? 'close' : 'keep-alive']);
    this.#writer = new BodyWriter(this.#client, old ? { kind: 'until-close' } : sent);
    const all = new Headers([...headers.fields, ...own]);
    gather(this.#client);
    await writeTo(this.#client, writeHead(`HTTP/1.1 ${status} ${reason}`, all));
  }

  async piece(bytes: Buffer): Promise<void> {
    await this.#writer?.write(bytes);
  }

  async end(): Promise<void> {
    await this.#writer?.end();
    this.#ended = true;
  }

  async refuse(refusal: Refusal, destination: Destination | undefined, rule?: string): Promise<void> {
    const body = refusalBody(refusal, destination, rule);
    const headers = new Headers([
      ['Content-Type', 'application/json'],
      ['Cache-Control', 'no-store'],
      ['X-Sallyport-Denied', refusal.code],
    ]);
    const isHead = this.#request?.method === 'HEAD';
    await this.begin(refusal.status, reasonOf(refusal.status), headers, {
      kind: 'length',
      bytes: body.length,
    });
    if (!isHead) await this.piece(body);
    await this.end();
  }

  async switchTo(
    head: ResponseHead,
    upstream: Upstream,
    answered: AsyncIterable<Buffer>,
    count: ByteCount,
  ): Promise<void> {
    this.#begun = true;
    this.#switched = true;
    const own: [string, string][] = [
      ['Connection', 'Upgrade'],
      ['Upgrade', 'websocket'],
    ];
    const headers = new Headers([...own, ...endToEnd(head.headers).fields]);
    await writeTo(this.#client, writeHead(`HTTP/1.1 101 ${head.reason}`, headers));
    await joinStreams(
      { stream: this.#client, bytes: this.#reader.pieces() },
      { stream: upstream.stream, bytes: answered },
      count,
    );
  }

  /** Reads on for a moment: a connection that is closed with bytes unread is reset, and the answer with it. */
  async close(): Promise<void> {
    const client = this.#client;
    if (client.destroyed || this.#switched) return;
    if (this.#begun && !this.#ended) {
      // An answer that broke off must not look like a whole one, which it would to HTTP/1.0.
      cut(client);
      return;
    }
    const timer = setTimeout(() => client.destroy(), lingerMs);
    try {
      client.end();
      for (let bytes = 0; bytes < lingerBytes; ) {
        const piece = await this.#reader.some(65_536);
        if (piece === undefined) break;
        bytes += piece.length;
      }
    } catch {
      // It is gone, which is what is wanted.
    } finally {
      clearTimeout(timer);
      client.destroy();
    }
  }
}

function cut(client: Duplex): void {
  if (client instanceof net.Socket) client.resetAndDestroy();
  else client.destroy(new StreamEnded('the answer broke off'));
}

const needsLength = (status: number, request: RequestHead | undefined): boolean =>
  status >= 200 && status !== 204 && status !== 304 && request?.method !== 'HEAD';

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
  502: 'Bad Gateway',
};
const reasonOf = (status: number): string => reasons[status] ?? 'Refused';
