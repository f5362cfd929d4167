/**
 * The host's account of one stream that porter sends on: refuses more than the window, of the stream and of the whole
 * connection, and gives credit as bytes are taken.
 */

import { Batch } from './batch.ts';
import { frameType } from './frame.ts';
import { streamWindow } from './greeting.ts';
import { type PorterLink, violation } from './link.ts';
import { PayloadWriter } from './payload.ts';

const promptBytes = 4 * 1024;

export class CreditAccount {
  readonly #link: PorterLink;
  readonly #stream: number;
  readonly #batch: Batch;
  /** Arrived and not yet given back. */
  #underWay = 0;
  #taken = 0;

  constructor(link: PorterLink, stream: number) {
    this.#link = link;
    this.#stream = stream;
    this.#batch = new Batch(() => this.#tell((...frame) => link.send(...frame)));
  }

  get underWay(): number {
    return this.#underWay;
  }

  arrived(bytes: number): void {
    this.#underWay += bytes;
    if (this.#underWay > streamWindow) throw violation('more than it had credit for');
    this.#link.arrived(bytes);
  }

  taken(bytes: number): void {
    this.#taken += bytes;
    this.#batch.add(bytes);
    // Most of what is under way was taken: porter may be waiting for just this.
    if (this.#taken >= promptBytes && this.#taken * 2 >= this.#underWay) this.#batch.flush();
  }

  /** Gives back at once what was taken. */
  flush(): void {
    this.#batch.flush();
  }

  /** Gives back what was taken with the frame that follows, or soon. */
  flushByTheWay(): void {
    this.#batch.forget();
    this.#tell((...frame) => this.#link.sendByTheWay(...frame));
  }

  /** Porter has said that the stream is over: from there on it counts nothing of it either. */
  end(): void {
    this.#giveBack(this.#underWay);
  }

  #tell(send: (type: number, stream: number, payload: Buffer) => void): void {
    const bytes = this.#taken;
    // Late ones may come when the stream is over, and then all was given back.
    if (bytes === 0) return;
    send(frameType.credit, this.#stream, new PayloadWriter().u32(bytes).end());
    this.#giveBack(bytes);
  }

  #giveBack(bytes: number): void {
    this.#underWay -= bytes;
    this.#taken = 0;
    this.#link.gaveBack(bytes);
  }
}
