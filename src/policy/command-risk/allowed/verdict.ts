/** What an allow-list says of a call. */

import type { Call } from '../call.ts';
import type { Arg } from '../words.ts';
import { type OptionList, type Problem, readCall, readOptionList } from './option-list.ts';

export interface Verdict {
  /** Absent: every option and operand is known as harmless. */
  readonly problem?: Problem | undefined;
  /** Words that are text and no paths, so that `grep .env file` reads no `.env`. */
  readonly texts?: ReadonlySet<Arg>;
}

export type Allowed = (call: Call) => Verdict;

export const refused = (text: string, arg?: Arg): Verdict => ({
  problem: { text, ...(arg === undefined ? {} : { arg }) },
});

const lists = new Map<string, OptionList>();

/** Read once each; most are never needed. */
export function optionList(notation: string): OptionList {
  const known = lists.get(notation);
  if (known !== undefined) return known;
  const made = readOptionList(notation);
  lists.set(notation, made);
  return made;
}

export const byOptions =
  (notation: string): Allowed =>
  (call) => {
    const { problem, texts, written } = readCall(call, optionList(notation));
    if (written.length > 0 && problem === undefined) call.writes(written);
    return { problem, texts };
  };
