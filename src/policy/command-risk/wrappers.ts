/** Programs that run another one: what they run is judged in their place, and what they add is said. */

import type { Call, Judge } from './call.ts';
import { type Arg, unknownArg } from './words.ts';

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

const through: Judge = (call) => {
  const words = inner(call);
  if (words.length > 0) call.bench.command(words, call.span);
};

const asRoot: Judge = (call) => {
  call.report('system_write', `${call.program} runs it with more rights than you have`);
  if (call.has('-e') && call.program === 'sudo') call.writes(call.operands);
  else if (call.has('-i', '-s') && inner(call).length === 0)
    call.report('runs_code', 'a shell with more rights');
  else through(call);
};

const environment: Judge = (call) => {
  const split = call.valueOf('-S', '--split-string');
  if (split !== undefined) {
    if (split.known) call.bench.script(split.text, split.span);
    else call.report('not_understood', 'env splits words that are not known yet', split.span);
  }
  let rest = inner(call);
  while (rest[0] !== undefined && /^[A-Za-z_][A-Za-z0-9_]*=/.test(rest[0].text)) {
    judgeAssignment(call, rest[0]);
    rest = rest.slice(1);
  }
  if (split === undefined && rest.length > 0) call.bench.command(rest, call.span);
};

/** Variables by which a program is made to run something else. */
const runningVariables =
  /^(PATH|LD_[A-Z_]+|DYLD_[A-Z_]+|BASH_ENV|ENV|PROMPT_COMMAND|IFS|SHELLOPTS|PS4|PAGER|MANPAGER|LESSOPEN|LESSCLOSE|EDITOR|VISUAL|BROWSER|GIT_(SSH|SSH_COMMAND|PAGER|EDITOR|SEQUENCE_EDITOR|EXTERNAL_DIFF|ASKPASS|PROXY_COMMAND|EXEC_PATH|CONFIG_[A-Z0-9_]+|CONFIG)|SSH_ASKPASS|NODE_OPTIONS|NODE_PATH|PYTHON(PATH|STARTUP|HOME|INSPECT)|PERL5(OPT|LIB|DB)|RUBY(OPT|LIB)|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|MAKEFLAGS|RUSTC_WRAPPER|CC|CXX|GOFLAGS|npm_config_[a-z_]+)$/;

export function judgeAssignment(call: Call, arg: Arg): void {
  const name = arg.text.slice(0, arg.text.search(/\+?=/));
  if (runningVariables.test(name)) {
    call.report('runs_code', `${name} decides what other programs run`, arg.span);
  }
}

/** What it runs gets words that are read, so nobody knows them yet. */
const fed: Judge = (call) => {
  const words = inner(call);
  const placeholder = call.valueOf('-I', '--replace')?.text;
  const replaced = words.map((word) =>
    (placeholder !== undefined && placeholder !== '' && word.text.includes(placeholder)) ||
    word.text.includes('{}')
      ? unknownArg(word.span)
      : word,
  );
  if (words.length > 0) call.bench.command([...replaced, unknownArg(call.span)], call.span);
  else if (call.program === 'parallel') call.report('runs_code', 'parallel runs the lines that it reads');
};

const byString: Judge = (call) => {
  const script = call.valueOf('-c', '--command');
  if (script === undefined) call.report('runs_code', `${call.program} starts a shell`);
  else if (script.known) call.bench.script(script.text, script.span);
  else call.report('not_understood', `${call.program} runs text that is not known yet`, script.span);
};

const watching: Judge = (call) => {
  const words = inner(call);
  const known = words.every((word) => word.known);
  if (words.length > 0 && known) call.bench.script(words.map((word) => word.text).join(' '), call.span);
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
