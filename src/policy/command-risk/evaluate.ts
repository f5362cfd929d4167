/**
 * Judges a command before anybody runs it: which class it is, where it should run, and why, with the place in its text.
 *
 * It is advice. The sandbox is the boundary: what this takes for safe by mistake is what an attacker looks for, so whatever
 * it does not understand is `unknown` and never `safe`. Pure: it reads nothing but its arguments.
 */

import { parse } from 'unbash';
import type { Event } from './call.ts';
import { judgeScript } from './judge-script.ts';
import { defaultLists, type ReadLists, readLists } from './lists.ts';
import { conclude, type Evaluation, type Reason, type RuleName, rules, type Span } from './risk.ts';

/** A line that nobody writes and nobody could read; the parser's time would be a lever. */
const mostCharacters = 64 * 1024;

export interface EvaluateOptions {
  readonly lists?: ReadLists;
  /** Absolute; paths below it are the project's own. */
  readonly cwd?: string;
}

export interface Judgement extends ReadLists {
  readonly cwd: string | undefined;
  readonly report: (rule: RuleName, span: Span, text: string) => void;
  readonly note: (event: Event, span: Span) => void;
  /** How often something was reported that does not run on the host. */
  readonly sentAway: () => number;
}

const defaults = readLists(defaultLists);

export function evaluateCommand(text: string, options: EvaluateOptions = {}): Evaluation {
  const reasons: Reason[] = [];
  const whole = { start: 0, end: text.length };
  let sentAway = 0;
  const events: Noted[] = [];
  const judgement: Judgement = {
    ...(options.lists ?? defaults),
    cwd: options.cwd,
    sentAway: () => sentAway,
    note: (event, span) => events.push({ event, span }),
    report: (rule, span, why) => {
      if (rules[rule].route !== 'host') sentAway += 1;
      const isKnown = reasons.some(
        (known) => known.rule === rule && known.span.start === span.start && known.span.end === span.end,
      );
      if (!isKnown) reasons.push({ rule, span, text: why });
    },
  };
  if (text.length > mostCharacters) {
    judgement.report('not_understood', whole, `longer than ${mostCharacters} characters`);
    return conclude(reasons);
  }
  if (text.trim() === '') {
    judgement.report('not_understood', whole, 'there is no command');
    return conclude(reasons);
  }
  judgeScript(text, judgement);
  judgeChains(text, events, judgement);
  const plain = withoutTricks(text, judgement);
  // Offsets of the plain text mean nothing in what was given.
  if (plain !== text)
    judgeScript(plain, { ...judgement, report: (rule, _, why) => judgement.report(rule, whole, why) });
  return conclude(reasons);
}

interface Noted {
  readonly event: Event;
  readonly span: Span;
}

/** SECURITY: a repository that this line unpacks has a configuration, and git runs the programs that it names. */
function judgeChains(text: string, events: readonly Noted[], { report }: Judgement): void {
  const repeats = /\b(for|while|until|select)\b|\(\)|\bfunction\b/.test(text);
  const follows = (before: Event, { span }: Noted): boolean =>
    events.some((each) => each.event === before && (repeats || each.span.start <= span.start));
  for (const each of events) {
    const isElsewhere = each.event === 'repository-elsewhere';
    if (each.event !== 'repository' && !isElsewhere) continue;
    if (follows('brings', each) || (isElsewhere && follows('copies', each)))
      report('not_understood', each.span, 'git reads the configuration of what this line unpacks or copies');
  }
}

/** Marks that turn the direction of writing: the text reads otherwise than it runs. */
const turning = /[\u202A-\u202E\u2066-\u2069]/u;
const invisible = /[\u00AD\u180E\u200B-\u200F\u2060-\u2064\uFEFF]/gu;
/** Between letters it parts a word that looks whole; in an emoji it joins two pictures. */
const invisibleInWord = /[\w/.-][\u00AD\u180E\u200B-\u200F\u2060-\u2064\uFEFF]+[\w/.-]/u;
const controls = /(?![\t\n\r])\p{Cc}/u;

/** The text as a reader would take it: letters in their plain form, nothing invisible. */
function withoutTricks(text: string, { report }: Judgement): string {
  const tell = (pattern: RegExp, why: string): void => {
    const found = pattern.exec(text);
    if (found !== null)
      report('hidden_text', { start: found.index, end: found.index + found[0].length }, why);
  };
  tell(turning, 'a mark that turns the direction of writing');
  tell(invisibleInWord, 'an invisible character within a word');
  tell(controls, 'a control character');
  const plain = text.normalize('NFKC').replace(invisible, '').replace(turning, '');
  const asWords = (source: string): string =>
    parse(source)
      .commands.map((each) => source.slice(each.pos, each.end).split(/\s/)[0])
      .join(' ');
  if (plain !== text && asWords(plain) !== asWords(text)) {
    report(
      'hidden_text',
      { start: 0, end: text.length },
      'letters that look like others in the name of a program',
    );
  }
  return plain;
}
