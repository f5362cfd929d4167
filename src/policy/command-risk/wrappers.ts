/** Programs that run another one: what they run is judged in their place, and what they add is said. */

import { machineOptions } from './allowed/machine.ts';
import { readCall } from './allowed/option-list.ts';
import { readerOptions } from './allowed/readers.ts';
import { optionList } from './allowed/verdict.ts';
import type { Call, Judge } from './call.ts';
import { whySteers } from './steering.ts';
import { type Arg, protectedName, secretName, someName, unknownArg } from './words.ts';

/** Their options that take a word of their own, which is therefore not the command. */
const optionsWithValue: Readonly<Record<string, string>> = {
  sudo: 'C D g h p R r T t U u --user --group --chdir --host --prompt --close-from --role --type',
  doas: 'C u',
  env: 'u C S --unset --chdir --split-string',
  nice: 'n --adjustment',
  ionice: 'c n p P u --class --classdata',
  timeout: 'k s --kill-after --signal',
  stdbuf: 'i o e --input --output --error',
  xargs:
    'a d E e I i L l n P s --arg-file --delimiter --eof --replace --max-lines --max-args --max-procs --max-chars',
  time: 'f o --format --output',
  strace: 'e o p s u E P a b I O S X',
  ltrace: 'e o p s u a A D F l n w x',
  flock: 'E w --conflict-exit-code --timeout --wait',
  chrt: 'T P D',
  taskset: '',
  parallel: 'j a S I --jobs --arg-file --colsep --delay --joblog --results --timeout --tmpdir',
  watch: 'n --interval',
  exec: 'a',
};

/** How many words before the command are the wrapper's own, besides its options. */
const ownOperands: Readonly<Record<string, number>> = { timeout: 1, flock: 1, taskset: 1, chrt: 1 };

/** The words from the command on. */
function inner(call: Call): readonly Arg[] {
  const withValue = new Set((optionsWithValue[call.program] ?? '').split(' '));
  let left = ownOperands[call.program] ?? 0;
  let at = 0;
  for (; at < call.args.length; at++) {
    const text = call.args[at]?.text ?? '';
    if (text === '--') return call.args.slice(at + 1);
    if (/^-./.test(text)) {
      const name = text.startsWith('--') ? text : text.slice(1);
      const takesNext = text.startsWith('--')
        ? withValue.has(name)
        : withValue.has(name.slice(-1)) && name.length === 1;
      if (takesNext) at += 1;
    } else if (left > 0) left -= 1;
    else break;
  }
  return call.args.slice(at);
}

/** Options of those that may run on the host; others are not known as harmless. In the notation of `option-list.ts`. */
const harmlessOptions: Readonly<Record<string, string>> = {
  nohup: 'text',
  nice: '-n: -# --adjustment: text',
  ionice: '-t -c: -n: --class: --classdata: --ignore text',
  stdbuf: '-i: -o: -e: --input: --output: --error: text',
  timeout: '-v -k: -s: --kill-after: --signal: --foreground --preserve-status --verbose text',
  time: '-pv --portability --verbose text',
  command: '-pvV text',
  builtin: 'text',
  exec: '-l -a: text',
  env: '-i0v -u: --ignore-environment --unset: --null --debug text',
  xargs:
    '-0rtx -d: -E: -I: -L: -n: -P: -s: --null --no-run-if-empty --verbose --exit --delimiter: --max-args: --max-procs: --max-lines: --max-chars: --replace? text',
};

/** The wrapper's own words, before the command. */
function judgeOwn(call: Call, words: readonly Arg[]): void {
  const notation = harmlessOptions[call.program];
  if (notation === undefined) {
    call.report('unknown_tool', `${call.program} is not known as harmless`);
    return;
  }
  const own = call.args.slice(0, call.args.length - words.length);
  const { problem } = readCall({ program: call.program, args: own }, optionList(notation));
  if (problem !== undefined) call.report('not_allowed', problem.text, problem.arg?.span ?? call.span);
}

const through: Judge = (call) => {
  const words = inner(call);
  judgeOwn(call, words);
  const [first] = words;
  if (first === undefined) return;
  const own = call.args.slice(0, call.args.length - words.length);
  if (call.program === 'command' && own.some(({ text }) => /^-p?[vV]$/.test(text))) return;
  if (first.text.startsWith('-') || (!first.known && words.length > 0 && !first.raw)) {
    call.report('not_understood', 'which program it runs is not clear', first.span);
  }
  call.bench.command(words, call.span);
};

const asRoot: Judge = (call) => {
  call.report('system_write', `${call.program} runs it with more rights than you have`);
  if (call.has('-e') && call.program === 'sudo') call.writes(call.operands);
  else if (call.has('-i', '-s') && inner(call).length === 0)
    call.report('runs_code', 'a shell with more rights');
  else {
    const words = inner(call);
    if (words.length > 0) call.bench.command(words, call.span);
  }
};

/** Programs that start no other one, so that a variable that is missing matters to nobody. */
const startsNothing = new Set([...Object.keys(readerOptions), ...Object.keys(machineOptions)]);

/** SECURITY: what keeps git from hooks and monitors of a repository is in the environment of a guarded command. */
function judgeRemoved(call: Call, rest: readonly Arg[]): void {
  const own = call.args.slice(0, call.args.length - rest.length);
  const { names } = readCall(
    { program: call.program, args: own },
    optionList(harmlessOptions['env'] ?? 'text'),
  );
  const program = rest.find(({ text }) => !/^[^=/]*=/.test(text));
  const removes = ['i', 'ignore-environment', 'u', 'unset'].some((name) => names.has(name));
  if (removes && program !== undefined && !startsNothing.has(program.text))
    call.report('not_allowed', 'env takes away what protects git and the shell');
}

const environment: Judge = (call) => {
  const split = call.args.find(({ text }) => /^(-[a-zA-Z0]*S|--s)/.test(text));
  if (split !== undefined) {
    call.report('not_allowed', 'env splits a text into words', split.span);
    const at = call.args.indexOf(split);
    const text = /^(?:-[a-zA-Z0]*S|--s[a-z-]*=?)([\s\S]*)$/.exec(split.text)?.[1] ?? '';
    const rest = call.args.slice(at + 1);
    const words = [{ ...split, text }, ...rest];
    if (words.every(({ known }) => known))
      call.bench.script(words.map((word) => word.text).join(' '), split.span);
    else call.report('not_understood', 'env splits words that are not known yet', split.span);
    return;
  }
  let rest = inner(call);
  judgeOwn(call, rest);
  judgeRemoved(call, rest);
  while (rest[0] !== undefined && /^[^=/]*=/.test(rest[0].text)) {
    const [{ text, known, span, splits }] = rest as readonly [Arg];
    if (splits === true) call.report('not_understood', 'a value that may become several words', span);
    const sign = text.indexOf('=');
    const why = whySteers(text.slice(0, sign), {
      exported: true,
      value: known ? text.slice(sign + 1) : undefined,
    });
    if (why !== undefined) call.report('runs_code', why, span);
    rest = rest.slice(1);
  }
  if (rest.length > 0) call.bench.command(rest, call.span);
};

/** What it runs gets words that are read: known where an `echo` gave them, patterns where a list of names did. */
const fed: Judge = (call) => {
  const words = inner(call);
  judgeOwn(call, words);
  const own = call.args.slice(0, call.args.length - words.length);
  const { names, values } = readCall(
    { program: call.program, args: own },
    optionList(harmlessOptions['xargs'] ?? 'text'),
  );
  const placeholder = (values.get('I') ?? values.get('replace'))?.text || '{}';
  const replaces = names.has('I') || names.has('replace');
  const fill = (word: Arg, given: readonly Arg[]): Arg => {
    if (!word.text.includes(placeholder)) return word;
    const [only] = given;
    if (given.length !== 1 || only?.known !== true) return unknownArg(word.span);
    return { ...word, text: word.text.replaceAll(placeholder, only.text), glob: word.glob || only.glob };
  };
  if (words.length === 0) {
    if (call.program === 'parallel') call.report('runs_code', 'parallel runs the lines that it reads');
    return;
  }
  const most = Number((values.get('n') ?? values.get('max-args'))?.text ?? Number.POSITIVE_INFINITY);
  for (const given of givenWords(call, names, most))
    call.bench.command(replaces ? words.map((word) => fill(word, given)) : [...words, ...given], call.span);
  // Where nothing is read, it still runs once, without a word more.
  if (!replaces && words.length > 1) call.bench.command(words, call.span);
};

/** The words of each time that the command runs. */
function givenWords(call: Call, names: ReadonlySet<string>, most: number): readonly (readonly Arg[])[] {
  const { listed, input, span } = call;
  if (listed === 'plain') return [[someName(span)]];
  if (listed === 'protected') return [[someName(span)], [protectedName(span)]];
  if (listed === 'secret') return [[someName(span)], [protectedName(span)], [secretName(span)]];
  // By these the text is taken apart in other ways.
  const isPlain = !['0', 'null', 'd', 'delimiter', 'E', 'L', 'max-lines', 's', 'max-chars'].some((name) =>
    names.has(name),
  );
  if (input === undefined || /["'\\]/.test(input) || !isPlain) return [[unknownArg(span)]];
  const words = input
    .split(/\s+/)
    .filter((text) => text !== '')
    .map((text) => ({ text, known: true, glob: false, raw: text, span }));
  if (!(most >= 1)) return [[unknownArg(span)]];
  const times = Math.max(1, Math.ceil(words.length / most));
  return Array.from({ length: times }, (_, at) =>
    times === 1 ? words : words.slice(at * most, (at + 1) * most),
  );
}

const byString: Judge = (call) => {
  call.report('unknown_tool', `${call.program} is not known as harmless`);
  const script = call.valueOf('-c', '--command');
  if (script === undefined) call.report('runs_code', `${call.program} starts a shell`);
  else if (script.known && !script.glob) call.bench.script(script.text, script.span);
  else call.report('not_understood', `${call.program} runs text that is not known yet`, script.span);
};

const watching: Judge = (call) => {
  call.report('unknown_tool', 'watch has no end');
  const words = inner(call);
  const known = words.every((word) => word.known);
  if (words.length > 0 && known)
    call.bench.script(words.map((word) => word.text).join(' '), call.span, 'dash');
  else if (words.length > 0) call.report('not_understood', 'watch runs text that is not known yet');
};

const otherRoot: Judge = (call) => {
  call.report('system_write', `${call.program} changes what the rest of the command sees`);
  const words = inner(call);
  const command = call.program === 'chroot' ? words.slice(1) : words;
  if (command.length > 0) call.bench.command(command, call.span);
};

export const wrappers: Readonly<Record<string, Judge>> = {
  ...Object.fromEntries(
    'nohup nice ionice stdbuf setsid timeout time command builtin exec busybox toybox strace ltrace flock chrt taskset caffeinate chronic unbuffer eatmydata catchsegv setarch linux32 linux64 dbus-run-session xvfb-run'
      .split(' ')
      .map((name) => [name, through]),
  ),
  sudo: asRoot,
  doas: asRoot,
  pkexec: asRoot,
  su: (call) => {
    call.report('system_write', 'su runs it as somebody else');
    byString(call);
  },
  runuser: asRoot,
  env: environment,
  xargs: fed,
  parallel: fed,
  script: byString,
  watch: watching,
  chroot: otherRoot,
  unshare: otherRoot,
  nsenter: otherRoot,
};
