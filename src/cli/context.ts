/** What a verb is given by the entry of the command line. */

import { SallyportError } from '../protocol/errors.ts';

export type Interruption = 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'SIGPIPE';

export interface CliContext {
  /** Fires at the first Ctrl-C, TERM or HUP, unless somebody takes them. */
  readonly signal: AbortSignal;
  /** From now on signals are the taker's, as is a reader of the output that went away; until the returned function is called. */
  readonly takeSignals: (taker: (interruption: Interruption) => void) => () => void;
}

/** Where the signals of this process go. */
export class SignalDesk implements CliContext {
  readonly #abort = new AbortController();
  readonly #exit: (code: number) => never;
  #taker: ((interruption: Interruption) => void) | undefined;
  #interruption: Interruption | undefined;

  constructor(exit: (code: number) => never) {
    this.#exit = exit;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Why the signal fired. */
  get interruption(): Interruption | undefined {
    return this.#interruption;
  }

  readonly takeSignals = (taker: (interruption: Interruption) => void): (() => void) => {
    this.#taker = taker;
    return () => {
      if (this.#taker === taker) this.#taker = undefined;
    };
  };

  receive(interruption: Interruption): void {
    if (this.#taker !== undefined) this.#taker(interruption);
    // A reader that has seen enough (`sally ls | head`) is no error.
    else if (interruption === 'SIGPIPE') this.#exit(0);
    // The second one means it: whoever waits for a clean end has had the chance.
    else if (this.signal.aborted) this.#exit(interruption === 'SIGTERM' ? 143 : 130);
    else {
      this.#interruption = interruption;
      this.#abort.abort(new SallyportError('cancelled', `it was interrupted (${interruption})`));
    }
  }
}
