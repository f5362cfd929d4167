/** Steps that are undone in reverse if a later one fails. Undoing goes on past its own failures and reports them. */

export class Saga {
  readonly #undo: Array<{ readonly what: string; readonly undo: () => Promise<void> }> = [];

  /** How to take back what was just done. */
  onFailure(what: string, undo: () => Promise<void>): void {
    this.#undo.push({ what, undo });
  }

  async undo(report: (what: string, error: unknown) => void): Promise<void> {
    for (const { what, undo } of this.#undo.reverse()) {
      try {
        await undo();
      } catch (error) {
        report(what, error);
      }
    }
    this.#undo.length = 0;
  }
}
