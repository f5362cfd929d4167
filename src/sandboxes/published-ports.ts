/**
 * The ports of one sandbox that this machine can reach. The daemon listens, and each connection goes through porter to a
 * program inside, so it works without a network card. They are open while the sandbox is there to answer, and come back
 * with it.
 */

import type { Socket } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { SallyportError } from '../protocol/errors.ts';
import type { EventDraft } from '../protocol/events.ts';
import { mostPorts, type PortSpec, writePort } from '../protocol/port-spec.ts';
import type { PortView } from '../protocol/views.ts';
import { addressesOf, type BoundPort, bindPort, type PublishedPort } from './bound-port.ts';
import type { SandboxRecord } from './records.ts';

export interface PortsHost {
  readonly record: () => SandboxRecord;
  /** Safe when it returns. */
  readonly note: (news: Pick<SandboxRecord, 'ports'>) => void;
  /** To a port inside; waits until the sandbox is ready. */
  readonly connect: (port: number) => Promise<Duplex>;
  /** Throws where a port inside may not be published now. */
  readonly requirePublishable: (box: number) => void;
  /** Somebody uses the sandbox until the returned function is called. */
  readonly hold: () => () => void;
  readonly tell: (event: EventDraft) => void;
  readonly report: (what: string, error: unknown) => void;
}

export class PublishedPorts {
  readonly #host: PortsHost;
  readonly #bound = new Map<number, BoundPort>();

  constructor(host: PortsHost, bound: readonly BoundPort[] = []) {
    this.#host = host;
    for (const port of bound) this.#open(port);
  }

  get views(): readonly PortView[] {
    return this.#wanted.map((port) => ({
      addresses: [...addressesOf(port)],
      host: port.host,
      box: port.box,
      open: this.#bound.has(port.host),
    }));
  }

  /** Those that were published and are not open. Rejects with `port_unavailable`; what is open stays so. */
  async openAll(): Promise<void> {
    for (const port of this.#wanted) {
      if (!this.#bound.has(port.host)) this.#open(await bindPort(port));
    }
  }

  /** The same where nobody waits: what cannot be opened is said. */
  openIfPossible(): void {
    void (async () => {
      for (const port of this.#wanted.filter(({ host }) => !this.#bound.has(host))) {
        try {
          const bound = await bindPort(port);
          // Another way here may have been quicker, or it is over by now.
          if (this.#bound.has(port.host) || this.#host.record().state !== 'READY') bound.close();
          else this.#open(bound);
        } catch (error) {
          this.#note('port_unavailable', error instanceof Error ? error.message : String(error));
        }
      }
    })().catch((error: unknown) => this.#host.report('open the published ports', error));
  }

  async publish(spec: PortSpec): Promise<PortView> {
    const bound = await bindPort(spec);
    try {
      this.#requirePlace();
      this.requirePublishable(spec);
      this.#host.note({ ports: [...this.#wanted, bound.port] });
    } catch (error) {
      bound.close();
      throw error;
    }
    this.#open(bound);
    this.told(bound.port);
    const { host } = bound.port;
    const view = this.views.find((port) => port.host === host);
    if (view === undefined) throw new RangeError('a port that was published is not there');
    return view;
  }

  /** For a caller that changes something before it publishes; `publish` checks again. */
  requirePublishable({ box }: PortSpec): void {
    this.#host.requirePublishable(box);
  }

  /** SECURITY: a model may publish ports of its sandbox, and must not take every descriptor of the daemon. */
  #requirePlace(): void {
    if (this.#wanted.length < mostPorts) return;
    const { name } = this.#host.record();
    throw new SallyportError('refused_by_policy', `sandbox ${name} publishes ${mostPorts} ports already`, {
      details: { sandbox: name, limit: mostPorts },
      advice: `Take one back first: \`sally ports ${name} --unpublish PORT\`.`,
    });
  }

  /** Whoever is connected is cut off. */
  unpublish(host: number): void {
    const port = this.#wanted.find((published) => published.host === host);
    const { name, id } = this.#host.record();
    if (port === undefined) {
      const list = this.#wanted.map(writePort).join(', ');
      throw new SallyportError('port_not_published', `sandbox ${name} does not publish port ${host}`, {
        details: { sandbox: name, port: host },
        advice: list === '' ? 'It publishes none.' : `It publishes ${list}.`,
      });
    }
    this.#host.note({ ports: this.#wanted.filter((published) => published !== port) });
    this.#bound.get(host)?.close();
    this.#bound.delete(host);
    this.#host.tell({ type: 'port.unpublished', sandbox_id: id, host, box: port.box });
  }

  closeAll(): void {
    for (const port of this.#bound.values()) port.close();
    this.#bound.clear();
  }

  /** An event for one that is new; a warning where others than this machine reach it. */
  told(port: PublishedPort): void {
    const { host, box } = port;
    const addresses = [...addressesOf(port)];
    this.#host.tell({ type: 'port.published', sandbox_id: this.#host.record().id, host, box, addresses });
    if (!addresses.every(isLoopback)) {
      this.#note('port_public', `port ${box} is open to other machines, at ${addresses.join(', ')}:${host}`);
    }
  }

  get #wanted(): readonly PublishedPort[] {
    return this.#host.record().ports ?? [];
  }

  #open(bound: BoundPort): void {
    this.#bound.set(bound.port.host, bound);
    bound.take((socket) => void this.#serve(socket, bound.port.box));
  }

  async #serve(socket: Socket, box: number): Promise<void> {
    const release = this.#host.hold();
    socket.once('close', release);
    try {
      const inside = await this.#host.connect(box);
      if (socket.destroyed) inside.destroy();
      else join(socket, inside);
    } catch {
      // Nobody listens inside, or it does not run: the caller sees what it would see of a closed port.
      socket.resetAndDestroy();
    }
  }

  #note(code: string, message: string): void {
    this.#host.tell({ type: 'sandbox.note', sandbox_id: this.#host.record().id, code, message });
  }
}

const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.');

/**
 * The end of one side is passed on, after all that came before it; the loss of one is the loss of both. What went wrong is
 * seen by whoever is connected.
 */
function join(socket: Socket, inside: Duplex): void {
  pipeline(socket, inside, () => {});
  pipeline(inside, socket, () => {});
}
