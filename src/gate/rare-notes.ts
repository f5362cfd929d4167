/** Notes that code inside can provoke: each code at most once in a while, with how often it was left out since. */

const pauseMs = 10_000;

export class RareNotes {
  readonly #note: (code: string, message: string) => void;
  readonly #told = new Map<string, { readonly atMs: number; skipped: number }>();

  constructor(note: (code: string, message: string) => void) {
    this.#note = note;
  }

  /** `code` is one of ours, so there are few of them. */
  note(code: string, message: string): void {
    const nowMs = performance.now();
    const before = this.#told.get(code);
    if (before !== undefined && nowMs - before.atMs < pauseMs) {
      before.skipped++;
      return;
    }
    const more = before === undefined || before.skipped === 0 ? '' : ` (and ${before.skipped} times before)`;
    this.#told.set(code, { atMs: nowMs, skipped: 0 });
    this.#note(code, `${message}${more}`);
  }
}
