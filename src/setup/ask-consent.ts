/** Asks the person at the terminal before something is installed; where nobody can be asked, only an explicit yes counts. */

import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';

export interface ConsentQuestion {
  /** Completes "Install …?". */
  readonly what: string;
  /** `--yes`, or a CI machine: said, not asked. */
  readonly agreed: boolean;
  readonly say: (text: string) => void;
}

export async function askConsent(question: ConsentQuestion, signal: AbortSignal): Promise<boolean> {
  if (question.agreed) {
    question.say(`installing ${question.what}`);
    return true;
  }
  if (!process.stdin.isTTY || !process.stderr.isTTY) return false;
  // Not in terminal mode: there Ctrl-C would end the question and never become the signal that ends the work.
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  try {
    // The end of the input (Ctrl-D) is no answer, and no answer is no consent.
    const ended = once(lines, 'close').then(() => 'n');
    const answer = await Promise.race([
      lines.question(`Install ${question.what}? [Y/n] `, { signal }),
      ended,
    ]);
    return /^(y|yes)?$/i.test(answer.trim());
  } catch {
    return false;
  } finally {
    lines.close();
  }
}
