/** The memory for WebSocket messages of one sandbox that are collected to be searched: of all its connections together. */

import { HttpViolation } from './violation.ts';

const mostBytes = 32 * 2 ** 20;

export class MessageRoom {
  readonly #mostBytes: number;
  #takenBytes = 0;

  constructor(most = mostBytes) {
    this.#mostBytes = most;
  }

  get takenBytes(): number {
    return this.#takenBytes;
  }

  /** Throws where there is no room: the connection ends. */
  take(bytes: number): void {
    if (this.#takenBytes + bytes > this.#mostBytes) {
      throw new HttpViolation(
        'bad_response',
        'the WebSocket messages of this sandbox that are not complete take too much memory',
      );
    }
    this.#takenBytes += bytes;
  }

  give(bytes: number): void {
    this.#takenBytes -= bytes;
  }
}
