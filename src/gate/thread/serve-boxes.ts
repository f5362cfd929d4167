/** The other half: serves the connections of all sandboxes in this thread, by what the daemon's half says of them. */

import type { MessagePort } from 'node:worker_threads';
import { type Deferred, deferred } from '../../lib/deferred.ts';
import { parseUpstream } from '../../policy/egress/upstream.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { BoxConnections } from '../box-connections.ts';
import { BoxCredentials, type GateSecrets } from '../box-credentials.ts';
import type { MachineResolver } from '../resolver.ts';
import type { TorLease, TorPlace } from '../tor/tor-client.ts';
import { findProxy } from '../upstream-proxy.ts';
import type { FromThread, OpenedBox, ToThread, WireError } from './messages.ts';
import { ThreadStream } from './thread-stream.ts';

export interface ServeOptions {
  readonly port: MessagePort;
  readonly resolver: MachineResolver;
  readonly secrets: Omit<GateSecrets, 'keys'>;
}

export function serveBoxes(options: ServeOptions): void {
  const served = new ServedBoxes(options);
  options.port.on('message', (message: ToThread) => served.receive(message));
}

class ServedBoxes {
  readonly #options: ServeOptions;
  readonly #boxes = new Map<number, BoxConnections>();
  readonly #streams = new Map<number, ThreadStream>();
  readonly #torCalls = new Map<number, Deferred<TorPlace>>();
  #nextCall = 1;

  constructor(options: ServeOptions) {
    this.#options = options;
  }

  receive(message: ToThread): void {
    switch (message.kind) {
      case 'box':
        this.#boxes.set(message.opened.box, this.#open(message.opened));
        return;
      case 'end':
        this.#boxes.get(message.box)?.end();
        this.#boxes.delete(message.box);
        return;
      case 'close-all':
        this.#boxes.get(message.box)?.closeAll();
        return;
      case 'probe':
        this.#boxes.get(message.box)?.probeAs(message.name);
        this.#send({ kind: 'answer', call: message.call, closed: 0 });
        return;
      case 'change':
        void this.#change(message);
        return;
      case 'connection':
        this.#serve(message);
        return;
      case 'stream':
        this.#streams.get(message.stream)?.receive(message.message);
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
    const stream = new ThreadStream((message) => this.#send({ kind: 'stream', stream: number, message }));
    this.#streams.set(number, stream);
    stream.once('close', () => this.#streams.delete(number));
    const connections = this.#boxes.get(box);
    if (connections === undefined) stream.destroy();
    else connections.serve(stream, where);
  }

  async #change({ box, call, egress }: Extract<ToThread, { kind: 'change' }>): Promise<void> {
    const closed = (await this.#boxes.get(box)?.change(egress)) ?? 0;
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
