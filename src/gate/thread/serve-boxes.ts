/** The other half: serves the connections of all sandboxes in this thread, by what the daemon's half says of them. */

import type { MessagePort } from 'node:worker_threads';
import { type Deferred, deferred } from '../../lib/deferred.ts';
import { parseUpstream } from '../../policy/egress/upstream.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { BoxConnections } from '../box-connections.ts';
import { BoxCredentials, type GateSecrets } from '../box-credentials.ts';
import { KnownValues } from '../credentials/known-values.ts';
import type { MachineResolver } from '../resolver.ts';
import type { TorLease, TorPlace } from '../tor/tor-client.ts';
import { findProxy } from '../upstream-proxy.ts';
import type { FromThread, OpenedBox, ToThread, WireError } from './messages.ts';
import { type ThreadShare, ThreadTime } from './thread-share.ts';
import { ThreadStream } from './thread-stream.ts';

export interface ServeOptions {
  readonly port: MessagePort;
  readonly resolver: MachineResolver;
  readonly secrets: Omit<GateSecrets, 'keys' | 'values'>;
}

export function serveBoxes(options: ServeOptions): void {
  const served = new ServedBoxes(options);
  options.port.on('message', (message: ToThread) => served.receive(message));
}

class ServedBoxes {
  readonly #options: ServeOptions;
  readonly #boxes = new Map<number, { readonly connections: BoxConnections; readonly share: ThreadShare }>();
  readonly #streams = new Map<number, { readonly stream: ThreadStream; readonly share: ThreadShare }>();
  readonly #time = new ThreadTime();
  readonly #values = new KnownValues((known) => this.#send({ kind: 'value', known }));
  readonly #torCalls = new Map<number, Deferred<TorPlace>>();
  #nextCall = 1;

  constructor(options: ServeOptions) {
    this.#options = options;
  }

  receive(message: ToThread): void {
    switch (message.kind) {
      case 'value':
        this.#values.learn(message.known);
        return;
      case 'box':
        this.#boxes.set(message.opened.box, {
          connections: this.#open(message.opened),
          share: this.#time.share(),
        });
        return;
      case 'end':
        this.#boxes.get(message.box)?.connections.end();
        this.#boxes.get(message.box)?.share.end();
        this.#boxes.delete(message.box);
        return;
      case 'close-all':
        this.#boxes.get(message.box)?.connections.closeAll();
        return;
      case 'probe':
        this.#boxes.get(message.box)?.connections.probeAs(message.name);
        this.#send({ kind: 'answer', call: message.call, closed: 0 });
        return;
      case 'change':
        void this.#change(message);
        return;
      case 'connection':
        this.#serve(message);
        return;
      case 'stream':
        this.#receive(message);
        return;
      case 'tor':
        this.#onTor(message.call, message.place);
    }
  }

  #open({ box, id, name, egress, keys }: OpenedBox): BoxConnections {
    const { resolver, secrets } = this.#options;
    const credentials =
      keys === undefined
        ? undefined
        : new BoxCredentials(id, egress.credentials ?? [], {
            ...secrets,
            values: this.#values,
            keys: { load: () => keys, save: () => {} },
          });
    const lease: TorLease = {
      socks: (withinMs) => this.#tor(box, withinMs),
      release: () => {},
    };
    return new BoxConnections({
      sandbox: name,
      egress,
      credentials,
      resolver: resolver.remembering(),
      proxy: findProxy({
        upstream: parseUpstream(egress.upstream),
        login: egress.upstream_secret,
        secrets: secrets.source,
        tor: () => lease,
        sandbox: id,
      }),
      written: (outcome) => this.#send({ kind: 'written', box, outcome }),
      note: (code, text) => this.#send({ kind: 'note', box, code, message: text }),
      report: (what, error) =>
        this.#send({
          kind: 'report',
          box,
          what,
          error: error instanceof Error ? error.message : String(error),
        }),
    });
  }

  #serve({ box, stream: number, where }: Extract<ToThread, { kind: 'connection' }>): void {
    const served = this.#boxes.get(box);
    if (served === undefined) {
      this.#send({ kind: 'stream', stream: number, message: { closed: true } });
      return;
    }
    const { connections, share } = served;
    const stream = new ThreadStream(
      (message) => this.#send({ kind: 'stream', stream: number, message }),
      (next) => share.handed(next),
    );
    this.#streams.set(number, { stream, share });
    stream.once('close', () => this.#streams.delete(number));
    share.run(() => connections.serve(stream, where));
  }

  /** Data of one that took more than its share waits, and its connections with it. An acknowledgement costs nothing. */
  #receive({ stream: number, message }: Extract<ToThread, { kind: 'stream' }>): void {
    const known = this.#streams.get(number);
    if (known === undefined) return;
    const { stream, share } = known;
    if ('taken' in message) stream.receive(message);
    else share.run(() => stream.receive(message));
  }

  async #change({ box, call, egress }: Extract<ToThread, { kind: 'change' }>): Promise<void> {
    const closed = (await this.#boxes.get(box)?.connections.change(egress)) ?? 0;
    this.#send({ kind: 'answer', call, closed });
  }

  async #tor(box: number, withinMs: number): Promise<TorPlace> {
    const call = this.#nextCall++;
    const answer = deferred<TorPlace>();
    this.#torCalls.set(call, answer);
    this.#send({ kind: 'tor', box, call, withinMs });
    return await answer.promise;
  }

  #onTor(call: number, place: TorPlace | WireError): void {
    const waiting = this.#torCalls.get(call);
    this.#torCalls.delete(call);
    if (!('error' in place)) {
      waiting?.resolve(place);
      return;
    }
    const { code, message, advice, details } = place.error;
    waiting?.reject(new SallyportError(code, message, { advice, details }));
  }

  #send(message: FromThread): void {
    const isData = message.kind === 'stream' && 'data' in message.message;
    this.#options.port.postMessage(message, isData ? [message.message.data.buffer] : []);
  }
}
