/** The host's account of one stream that porter sends on: refuses more than the window, gives credit as bytes are taken. */

import { Batch } from './batch.ts';
import { frameType } from './frame.ts';
import { streamWindow } from './greeting.ts';
import { type PorterLink, violation } from './link.ts';
import { PayloadWriter } from './payload.ts';

export class CreditAccount {
  readonly #batch: Batch;
  /** Arrived and not yet given back. */
  #underWay = 0;
  #taken = 0;

  constructor(link: PorterLink, stream: number) {
    this.#batch = new Batch(() => {
      link.send(frameType.credit, stream, new PayloadWriter().u32(this.#taken).end());
      this.#underWay -= this.#taken;
      this.#taken = 0;
    });
  }

  arrived(bytes: number): void {
    this.#underWay += bytes;
    if (this.#underWay > streamWindow) throw violation('more than it had credit for');
  }

  taken(bytes: number): void {
    this.#taken += bytes;
    this.#batch.add(bytes);
    // Nothing more is here: porter may be waiting for room, and nobody gains by letting it wait.
    if (this.#taken === this.#underWay) this.#batch.flush();
  }
}
