/** A question to the person at the terminal. No answer is no consent. */

import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { note, prompt } from './output.ts';

export interface ConsentQuestion {
  /** Completes "Install …?". */
  readonly what: string;
  /** `--yes`, or a CI machine: noted, not asked. */
  readonly agreed: boolean;
}

/** Asks before something is installed; where nobody can be asked, only an explicit yes counts. */
export async function askConsent({ what, agreed }: ConsentQuestion, signal: AbortSignal): Promise<boolean> {
  if (agreed) {
    note(`installing ${what}`);
    return true;
  }
  if (!process.stdin.isTTY || !process.stderr.isTTY) return false;
  return /^(y|yes)?$/i.test((await readLine(`Install ${what}? [Y/n] `, signal)) ?? 'n');
}

export async function askYesNo(question: string, signal: AbortSignal): Promise<boolean> {
  return /^y(es)?$/i.test(await askLine(`${question} [y/N] `, signal));
}

/** What was typed, without the spaces around it. The end of the input, or giving up, is nothing. */
export async function askLine(question: string, signal: AbortSignal): Promise<string> {
  return (await readLine(`sally: ${question}`, signal)) ?? '';
}

/** Undefined: the input ended (Ctrl-D), or the question was given up. */
async function readLine(question: string, signal: AbortSignal): Promise<string | undefined> {
  prompt(question);
  // Not in terminal mode: there Ctrl-C would end the question and never become the signal that ends the work.
  const lines = createInterface({ input: process.stdin, terminal: false });
  try {
    const ended = once(lines, 'close').then(() => undefined);
    return (await Promise.race([lines.question('', { signal }), ended]))?.trim();
  } catch {
    return undefined;
  } finally {
    lines.close();
  }
}
