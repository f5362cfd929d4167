/** What a verb is given by the entry of the command line. */

import { SallyportError } from '../protocol/errors.ts';

export type Interruption = 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'SIGPIPE';

export interface CliContext {
  /** Fires at the first Ctrl-C, TERM or HUP, unless somebody takes them. */
  readonly signal: AbortSignal;
  /** From now on signals are the taker's, as is a reader of the output that went away; until the returned function is called. */
  readonly takeSignals: (taker: (interruption: Interruption) => void) => () => void;
  /** What is under way now is done to its end: half of it would be worse. From then on only the second signal ends it. */
  readonly finish: () => void;
}

/** How long a verb may take to end after the first signal: whatever it waits for may never answer. */
const patience = { plainMs: 1000, cleanUpMs: 10_000 } as const;

const codes: Readonly<Record<Interruption, number>> = {
  SIGINT: 130,
  SIGTERM: 143,
  SIGHUP: 129,
  SIGPIPE: 141,
};

/** Where the signals of this process go. */
export class SignalDesk implements CliContext {
  readonly #abort = new AbortController();
  readonly #exit: (code: number) => never;
  #taker: ((interruption: Interruption) => void) | undefined;
  #interruption: Interruption | undefined;
  #patienceMs: number = patience.plainMs;
  #deadline: NodeJS.Timeout | undefined;
  #finishes = false;

  constructor(exit: (code: number) => never) {
    this.#exit = exit;
  }

  /** The verb has things to undo on this machine, or a command to wait for. */
  readonly allowCleanUp = (): void => {
    this.#patienceMs = patience.cleanUpMs;
  };

  readonly finish = (): void => {
    this.#finishes = true;
    clearTimeout(this.#deadline);
  };

  /** The exit code of a verb that ended: an interruption counts as the signal that it was. */
  exitCode(code: number): number {
    const isInterrupted = code === codes.SIGINT && this.#interruption !== undefined;
    return isInterrupted ? codes[this.#interruption ?? 'SIGINT'] : code;
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
    else if (this.signal.aborted) this.#exit(codes[interruption]);
    else {
      this.#interruption = interruption;
      if (!this.#finishes)
        this.#deadline = setTimeout(() => this.#exit(codes[interruption]), this.#patienceMs);
      // It holds nothing up by itself.
      this.#deadline?.unref();
      this.#abort.abort(new SallyportError('cancelled', `it was interrupted (${interruption})`));
    }
  }
}
