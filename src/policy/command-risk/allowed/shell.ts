/** Allow-lists of the shell's builtins. Those that set variables are judged by the names and values that they set. */

import type { Call } from '../call.ts';
import { whySteers } from '../steering.ts';
import type { Arg } from '../words.ts';
import { readCall } from './option-list.ts';
import { type Allowed, byOptions, optionList, refused, type Verdict } from './verdict.ts';

const plainName = /^[A-Za-z_]\w*$/;

/** `NAME`, `NAME=value`, `NAME+=value`. SECURITY: a subscript is expanded, so only plain names pass. */
function namesOf(args: readonly Arg[], exported: boolean): Verdict {
  for (const arg of args) {
    const sign = arg.text.search(/\+?=/);
    const name = sign === -1 ? arg.text : arg.text.slice(0, sign);
    if (!arg.known && (sign === -1 || arg.splits === true))
      return refused('which variable is set shows only when it runs', arg);
    const value = sign === -1 || !arg.known ? undefined : arg.text.slice(arg.text.indexOf('=') + 1);
    const why = whySteers(name, { exported, value });
    if (why !== undefined) return refused(why, arg);
  }
  return {};
}

const sets =
  (notation: string, exported: boolean): Allowed =>
  (call) => {
    const { problem, operands, texts } = readCall(call, optionList(notation));
    if (problem !== undefined && problem.arg !== undefined && /^[A-Za-z_]\w*\+?=/.test(problem.arg.text))
      return { ...namesOf(operands, exported), texts: new Set([...texts, ...operands]) };
    if (problem !== undefined) return { problem };
    return { ...namesOf(operands, exported), texts: new Set([...texts, ...operands]) };
  };

/** SECURITY: a quoted value in brackets is text that bash reads as an array, and expands. A plain array is not quoted. */
const declares: Allowed = (call) => {
  const list = call.args.find(
    ({ text, raw, known }) =>
      (known && raw !== text && /^\w+\+?=\(/.test(text)) || (!known && call.has('-a', '-A')),
  );
  return list === undefined ? declaresPlain(call) : refused('a value that bash reads as an array', list);
};

const declaresPlain: Allowed = (call) =>
  sets(
    '-Aaglprux write',
    call.options.some(({ text }) => text.includes('x')),
  )(call);

/** `test` and `[`: an operator must be known, and what -v names must be a name. */
const test: Allowed = (call) => {
  const args = call.program === '[' ? call.args.slice(0, -1) : call.args;
  for (const [at, arg] of args.entries()) {
    if (/^-[vR]$/.test(arg.text) && arg.known && !plainName.test(args[at + 1]?.text ?? ''))
      return refused('a subscript here runs code', arg);
    if (arg.known) continue;
    const before = args[at - 1];
    const after = args[at + 1];
    const isOperand =
      (before?.known === true &&
        /^(-[a-zA-Z]|!?=|==|-eq|-ne|-lt|-le|-gt|-ge|-nt|-ot|-ef|[<>])$/.test(before.text) &&
        !/^-[vRao]$/.test(before.text)) ||
      (after?.known === true && /^(!?=|==|-eq|-ne|-lt|-le|-gt|-ge|-nt|-ot|-ef|[<>])$/.test(after.text));
    if (!isOperand || arg.splits === true || !/^"/.test(arg.raw))
      return refused('a word that is not known yet may be an operator', arg);
  }
  return { texts: new Set(args) };
};

const printf: Allowed = (call) => {
  const [first, second] = call.args;
  if (first === undefined) return {};
  if (!first.known && !/^["']?[^$`"'-]/.test(first.raw))
    return refused('a format that is not known yet may be an option', first);
  if (/^-v/.test(first.text)) {
    const name = first.text === '-v' ? second : { ...first, text: first.text.slice(2) };
    return name === undefined ? {} : namesOf([name], false);
  }
  return { texts: new Set(call.args) };
};

const set: Allowed = (call) => {
  const [first] = call.args;
  for (const [at, arg] of call.args.entries()) {
    if (arg.text === '--' && arg.known) return {};
    const before = call.args[at - 1]?.text ?? '';
    if (/^[-+]o$|^-[euxvfC]+o$/.test(before)) {
      if (!/^(errexit|nounset|pipefail|xtrace|noglob|noclobber|verbose|errtrace|posix)$/.test(arg.text))
        return refused('an option of the shell that is not known as harmless', arg);
    } else if (!arg.known || !/^[-+][euxvfCE]*o?$/.test(arg.text))
      return refused('an option of the shell that is not known as harmless', arg);
  }
  return first === undefined ? {} : { texts: new Set(call.args) };
};

const shopt: Allowed = (call) => {
  const strange = call.args.find(
    ({ text, known }) =>
      !known || !/^(-[supq]+|nullglob|globstar|nocasematch|nocaseglob|failglob|extglob)$/.test(text),
  );
  return strange === undefined
    ? {}
    : refused('an option of the shell that is not known as harmless', strange);
};

const onlyAlone =
  (why: string, fits: RegExp = /^$/): Allowed =>
  (call) => {
    const strange = call.args.find(({ text, known }) => !known || !fits.test(text));
    return strange === undefined ? {} : refused(why, strange);
  };

const changesFolder: Allowed = (call) => {
  const strange = call.args.find(({ text, known }) => known && /^-./.test(text) && !/^-[LPe@n]+$/.test(text));
  return strange === undefined ? {} : refused('an option of cd', strange);
};

const anything: Allowed = (call) => ({ texts: new Set(call.args) });

/** A trap's action is judged as a script; what else stands there are names of signals. */
const trap: Allowed = (call) => {
  const strange = call.args.slice(1).find(({ text, known }) => !known || !/^(SIG)?[A-Z0-9+]+$/.test(text));
  return strange === undefined
    ? { texts: new Set(call.args) }
    : refused('a signal that is not known', strange);
};

export const shellAllowed: Readonly<Record<string, Allowed>> = {
  export: sets('-p write', true),
  declare: declares,
  typeset: declares,
  local: declares,
  readonly: (call: Call) => {
    const verdict = declares(call);
    return verdict.problem === undefined ? sets('-pa write', false)(call) : verdict;
  },
  read: (call: Call) => {
    const { problem, operands, values } = readCall(
      call,
      optionList('-ers -a: -d: -n: -N: -p: -t: -u: write'),
    );
    const array = values.get('a');
    return problem === undefined
      ? namesOf(array === undefined ? operands : [...operands, array], false)
      : { problem };
  },
  ...Object.fromEntries(
    ['mapfile', 'readarray'].map((name) => [name, sets('-t -d: -n: -O: -s: -u: write', false)]),
  ),
  getopts: (call: Call) => namesOf(call.operands.slice(1, 2), false),
  unset: (call: Call) => {
    const { problem, operands } = readCall(call, optionList('-v write'));
    return problem === undefined ? namesOf(operands, false) : { problem };
  },
  let: () => refused('let evaluates its words, and a subscript in them runs code'),
  test,
  '[': test,
  printf,
  echo: anything,
  ':': anything,
  true: anything,
  false: anything,
  set,
  shopt,
  alias: onlyAlone('an alias changes what a name runs'),
  unalias: onlyAlone('an alias changes what a name runs', /^-a$/),
  hash: onlyAlone('hash changes which program a name runs', /^-[rlt]$/),
  enable: onlyAlone('enable changes what a name runs', /^-[aps]$/),
  trap,
  history: onlyAlone('history reads or writes a file', /^\d+$/),
  compgen: byOptions('-abcdefgjksuv -A: text'),
  wait: byOptions('-nf text'),
  eval: anything,
  // Where they lead is judged with what comes after them.
  cd: changesFolder,
  pushd: changesFolder,
  chdir: changesFolder,
};
