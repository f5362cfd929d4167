/** Bytes on their way into the sandbox on one stream: never more than porter has given room for. */

import { frameType } from './frame.ts';
import { type PorterLink, violation } from './link.ts';

const stepBytes = 32 * 1024;

export class StreamInput {
  readonly #link: PorterLink;
  readonly #stream: number;
  readonly #window: number;
  #credit: number;
  #wake: (() => void) | undefined;
  #over = false;

  constructor(link: PorterLink, stream: number, window: number) {
    this.#link = link;
    this.#stream = stream;
    this.#window = window;
    this.#credit = window;
  }

  /** Resolves when all is on its way, or when nobody takes it any more. False in the latter case. */
  async write(data: Buffer): Promise<boolean> {
    for (let offset = 0; offset < data.length && !this.#over; ) {
      if (this.#credit === 0) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      if (!this.#link.hasRoom) {
        await this.#link.room();
        continue;
      }
      const part = data.subarray(offset, offset + Math.min(this.#credit, stepBytes));
      this.#credit -= part.length;
      offset += part.length;
      this.#link.send(frameType.stdin, this.#stream, part);
    }
    return !this.#over;
  }

  end(): void {
    if (!this.#over) this.#link.send(frameType.stdin, this.#stream);
  }

  onCredit(bytes: number): void {
    this.#credit += bytes;
    if (this.#credit > this.#window) throw violation('gave back more input than it was sent');
    this.#awaken();
  }

  close(): void {
    this.#over = true;
    this.#awaken();
  }

  #awaken(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}
