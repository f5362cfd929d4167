/** Connections out of this machine: straight to an address that was judged, or by a proxy that resolves names itself. */

import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { deadline } from '../lib/deadline.ts';
import { type Address, formatAddress, parseAddress } from '../policy/egress/address.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { Destination } from './contract.ts';

const connectMs = 10_000;
const answerMs = 30_000;
const mostAnswerBytes = 8192;

/** One address after the other, in this order, until one answers. */
export async function dialAddresses(
  addresses: readonly Address[],
  destination: Destination,
  signal: AbortSignal,
): Promise<{ readonly socket: Duplex; readonly address: Address }> {
  let last: unknown;
  for (const address of addresses) {
    try {
      const socket = await open({ host: formatAddress(address), port: destination.port }, signal);
      return { socket, address };
    } catch (error) {
      last = error;
      if (signal.aborted) break;
    }
  }
  throw unreachable(destination, last);
}

/** Whoever is asked to connect in our place. Names go to it as they are. */
export interface UpstreamProxy {
  readonly kind: 'http' | 'socks5';
  readonly place: Place;
  /** As a message calls it. */
  readonly label: string;
  readonly login?: { readonly user: string; readonly password: string } | undefined;
}

type Place = { readonly host: string; readonly port: number } | { readonly path: string };

/** `find` rejects where the proxy itself is not there. */
export async function dialByProxy(
  find: (signal: AbortSignal) => Promise<UpstreamProxy>,
  destination: Destination,
  signal: AbortSignal,
): Promise<Duplex> {
  const limit = deadline(answerMs, signal);
  let socket: Socket | undefined;
  let by = 'the upstream';
  try {
    const proxy = await find(limit.signal);
    by = proxy.label;
    socket = await open(proxy.place, limit.signal);
    const talk = new Talk(socket, limit.signal);
    if (proxy.kind === 'http') await askHttp(talk, destination, proxy);
    else await askSocks(talk, destination, proxy);
    talk.giveBack();
    return socket;
  } catch (error) {
    socket?.destroy();
    throw unreachable(destination, error, by);
  } finally {
    limit.dispose();
  }
}

/** Whether anybody listens there; rejects with what the system says. */
export async function touchProxy({ place }: UpstreamProxy, signal: AbortSignal): Promise<void> {
  (await open(place, signal)).destroy();
}

/** Without a deadline of its own making for each: this is called for every connection. */
function open(place: Place, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...place, allowHalfOpen: true, noDelay: true });
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      act();
    };
    const giveUp = (reason: unknown): void =>
      settle(() => {
        socket.destroy();
        reject(reason);
      });
    const onAbort = (): void => giveUp(signal.reason);
    const timer = setTimeout(() => giveUp(new Error(`no answer within ${connectMs} ms`)), connectMs);
    // The listener stays: an error of a connection that nobody uses any more must not end the process.
    socket.on('error', (error) => settle(() => reject(error)));
    socket.once('connect', () => settle(() => resolve(socket)));
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}

async function askHttp(
  talk: Talk,
  { host, port }: Destination,
  { login, label }: UpstreamProxy,
): Promise<void> {
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const basic = login && Buffer.from(`${login.user}:${login.password}`).toString('base64');
  const lines = [
    `CONNECT ${authority} HTTP/1.1`,
    `host: ${authority}`,
    ...(basic === undefined ? [] : [`proxy-authorization: Basic ${basic}`]),
  ];
  talk.send(Buffer.from(`${lines.join('\r\n')}\r\n\r\n`));
  const head = (await talk.until('\r\n\r\n')).toString('latin1');
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1];
  if (status === '407') throw refused(label, login !== undefined);
  if (status !== '200') throw new Error(`it answered ${status ?? 'something that is not HTTP'}`);
}

/** The name goes out as it is: nobody here resolves it. */
async function askSocks(
  talk: Talk,
  { host, port }: Destination,
  { login, label }: UpstreamProxy,
): Promise<void> {
  const method = login === undefined ? socksMethod.none : socksMethod.password;
  talk.send(Buffer.from([5, 1, method]));
  const greeting = await talk.take(2);
  if (greeting[0] !== 5) throw new Error('it does not speak SOCKS5');
  if (greeting[1] !== method) throw refused(label, login !== undefined);
  if (login !== undefined) {
    talk.send(Buffer.concat([Buffer.from([1]), counted(login.user), counted(login.password)]));
    if ((await talk.take(2))[1] !== 0) throw refused(label, true);
  }
  const address = parseAddress(host);
  const place =
    address === undefined
      ? Buffer.concat([Buffer.from([3, host.length]), Buffer.from(host, 'latin1')])
      : Buffer.concat([Buffer.from([address.family === 4 ? 1 : 4]), addressBytes(address)]);
  talk.send(Buffer.concat([Buffer.from([5, 1, 0]), place, Buffer.from([port >> 8, port & 255])]));
  const [, code = 255, , kind] = await talk.take(4);
  if (code !== 0) throw new Error(`it answered with the SOCKS code ${code}`);
  const length = kind === 1 ? 4 : kind === 4 ? 16 : kind === 3 ? (await talk.take(1)).readUInt8(0) : 0;
  await talk.take(length + 2);
}

const socksMethod = { none: 0, password: 2 } as const;

function counted(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length === 0 || bytes.length > 255) throw new RangeError('SOCKS5 takes 1 to 255 bytes of it');
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}

function refused(label: string, hadLogin: boolean): SallyportError {
  const what = hadLogin ? 'does not take the login that it was given' : 'wants a login';
  return new SallyportError('upstream_refused', `${label} ${what}`, { details: { upstream: label } });
}

export function addressBytes({ family, value }: Address): Buffer {
  const length = family === 4 ? 4 : 16;
  return Buffer.from(value.toString(16).padStart(length * 2, '0'), 'hex');
}

/** What an upstream says before the bytes that are not for us. */
class Talk {
  readonly #socket: Socket;
  readonly #signal: AbortSignal;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(socket: Socket, signal: AbortSignal) {
    this.#socket = socket;
    this.#signal = signal;
  }

  send(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  async take(count: number): Promise<Buffer> {
    while (this.#bytes.length < count) await this.#more();
    const taken = this.#bytes.subarray(0, count);
    this.#bytes = this.#bytes.subarray(count);
    return taken;
  }

  async until(mark: string): Promise<Buffer> {
    for (;;) {
      const at = this.#bytes.indexOf(mark, 0, 'latin1');
      if (at >= 0) return await this.take(at + mark.length);
      await this.#more();
    }
  }

  giveBack(): void {
    if (this.#bytes.length > 0) this.#socket.unshift(this.#bytes);
  }

  async #more(): Promise<void> {
    if (this.#bytes.length > mostAnswerBytes) throw new Error('it answered with too much');
    const chunk = await nextChunk(this.#socket, this.#signal);
    if (chunk === undefined) throw new Error('it closed the connection');
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
  }
}

/** Undefined at the end of the stream, when it breaks, and when the signal fires. */
export async function nextChunk(stream: Duplex, signal: AbortSignal): Promise<Buffer | undefined> {
  for (;;) {
    const chunk = stream.read() as Buffer | null;
    if (chunk !== null) return chunk;
    if (stream.readableEnded || stream.destroyed || signal.aborted) return undefined;
    await new Promise<void>((resolve) => {
      const names = ['readable', 'end', 'close', 'error'] as const;
      const done = (): void => {
        for (const name of names) stream.off(name, done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      for (const name of names) stream.on(name, done);
      signal.addEventListener('abort', done, { once: true });
    });
  }
}

function unreachable({ host, port }: Destination, cause: unknown, by?: string): SallyportError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new SallyportError(
    'egress_unreachable',
    `${host}:${port} could not be reached${by === undefined ? '' : ` by ${by}`}: ${why}`,
    {
      details: { code: 'unreachable', host, port },
      // What is the matter with the way out is more to the point than what is the matter with the host.
      ...(isSallyportError(cause) ? { advice: cause.advice } : {}),
      cause,
    },
  );
}
