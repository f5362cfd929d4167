/** A question to the person at the terminal. No answer is no consent. */

import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { harmless } from './harmless.ts';

export async function askYesNo(question: string, signal: AbortSignal): Promise<boolean> {
  return /^y(es)?$/i.test(await askLine(`${question} [y/N] `, signal));
}

/** What was typed, without the spaces around it. The end of the input, or giving up, is nothing. */
export async function askLine(question: string, signal: AbortSignal): Promise<string> {
  // Not in terminal mode: there Ctrl-C would end the question and never become the signal that ends the work.
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  try {
    const ended = once(lines, 'close').then(() => '');
    const answer = await Promise.race([lines.question(harmless(`sally: ${question}`), { signal }), ended]);
    return answer.trim();
  } catch {
    return '';
  } finally {
    lines.close();
  }
}
