/**
 * How often programs of one sandbox may knock at the gate: connections and DNS questions. Both are counted where they arrive, before
 * anything is made for them. A connection above the budget is closed; a question waits for its turn, and porter asks no more than 256 at
 * a time.
 */

import { Allowance, type Rate } from '../lib/allowance.ts';
import type { RareNotes } from './rare-notes.ts';

const connections: Rate = { burst: 1024, perSecond: 256 };
const questions: Rate = { burst: 512, perSecond: 256 };
/** A name that is new is written to disk. */
const newNameCost = 16;

export const overBudget = 'egress_over_budget';

export class EntranceBudget {
  readonly #notes: RareNotes;
  readonly #connections = new Allowance(connections);
  readonly #questions = new Allowance(questions);

  constructor(notes: RareNotes) {
    this.#notes = notes;
  }

  /** False: close it. */
  connection(): boolean {
    const isWithin = this.#connections.take();
    if (!isWithin) {
      const { perSecond } = connections;
      this.#notes.note(overBudget, `more than ${perSecond} connections a second: the gate closes the others`);
    }
    return isWithin;
  }

  /** Resolves when it is this question's turn. */
  async question(): Promise<void> {
    await this.#turn(1);
  }

  /** Resolves when one more name may be given an address. */
  async newName(): Promise<void> {
    await this.#turn(newNameCost);
  }

  async #turn(cost: number): Promise<void> {
    const waitMs = this.#questions.reserve(cost);
    if (waitMs === 0) return;
    const { perSecond } = questions;
    this.#notes.note(overBudget, `more than ${perSecond} DNS questions a second: the gate delays answers`);
    await new Promise((resolve) => setTimeout(resolve, waitMs).unref());
  }
}
