/** The host's account of one stream that porter sends on: refuses more than the window, gives credit as bytes are taken. */

import { frameType } from './frame.ts';
import { streamWindow } from './greeting.ts';
import { type PorterLink, violation } from './link.ts';
import { PayloadWriter } from './payload.ts';

const stepBytes = 64 * 1024;

export class CreditAccount {
  readonly #link: PorterLink;
  readonly #stream: number;
  #underWay = 0;
  #ungiven = 0;

  constructor(link: PorterLink, stream: number) {
    this.#link = link;
    this.#stream = stream;
  }

  arrived(bytes: number): void {
    this.#underWay += bytes;
    if (this.#underWay + this.#ungiven > streamWindow) throw violation('more than it had credit for');
  }

  /** `flush` gives even a small amount back: nothing more is expected to be taken soon. */
  taken(bytes: number, flush = false): void {
    this.#underWay -= bytes;
    this.#ungiven += bytes;
    if (this.#ungiven < stepBytes && !(flush && this.#ungiven > 0)) return;
    this.#link.send(frameType.credit, this.#stream, new PayloadWriter().u32(this.#ungiven).end());
    this.#ungiven = 0;
  }
}
