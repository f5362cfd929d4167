/** Programs that only read and print, and those of them that do more when they are asked to. */

import { machineOptions } from '../allowed/machine.ts';
import { readCall, readOptionList } from '../allowed/option-list.ts';
import { sedScripts } from '../allowed/programs.ts';
import { readerOptions } from '../allowed/readers.ts';
import { shellAllowed } from '../allowed/shell.ts';
import type { Call, Judge } from '../call.ts';
import { readAwk } from '../grammars/awk.ts';
import { findsProtected, readFind } from '../grammars/find.ts';
import { readSed } from '../grammars/sed.ts';

const sedList = readOptionList(
  '-nErsuz -e: -f< -l: -i? --quiet --silent --expression: --file< --regexp-extended --in-place? --separate --null-data --unbuffered --line-length: --posix --debug --sandbox abbr text+read',
);
const awkList = readOptionList('-F: -v: --field-separator: --assign: text+read');

const safe: Judge = () => {};

/** Programs that do nothing but what their allow-list says. */
const plain = [
  ...Object.keys(readerOptions),
  ...Object.keys(machineOptions),
  ...Object.keys(shellAllowed),
  ...'egrep fgrep  history complete bind fc suspend'.split(' '),
];

const writesWith =
  (test: (call: Call) => boolean, targets: (call: Call) => ReturnType<Call['valueOf']>): Judge =>
  (call) => {
    if (!test(call)) return;
    const target = targets(call);
    call.writes(target === undefined ? [] : [target]);
  };

const sed: Judge = (call) => {
  const { names, operands } = readCall(call, sedList);
  if (call.has('-f', '--file')) call.report('runs_code', 'sed runs a script from a file');
  const scripts = sedScripts(call, operands[0], names);
  for (const script of scripts) {
    if (!script.known) {
      call.report('not_understood', 'what sed does shows only when it runs', script.span);
      continue;
    }
    const { runs, writes } = readSed(script.text);
    if (runs) call.report('runs_code', 'sed runs a program with e', script.span);
    if (writes.length > 0) call.writes(writes.map((text) => ({ ...script, text, raw: text })));
  }
  if (call.has('--in-place') || call.options.some(({ text }) => /^-[nEsruz]*i/.test(text))) {
    call.writes(operands.filter((arg) => !scripts.includes(arg)));
  }
};

const awk: Judge = (call) => {
  if (
    call.options.some(({ text }) =>
      /^-[fEilLDoOpd]|^--(file|exec|include|load|profile|pretty|dump|debug|lint)/.test(text),
    )
  ) {
    call.report('runs_code', 'awk runs a program from a file, or writes one');
    return;
  }
  const { operands } = readCall(call, awkList);
  const [program] = operands;
  if (program === undefined) call.report('not_understood', 'awk without a program');
  else if (!program.known)
    call.report('not_understood', 'what awk does shows only when it runs', program.span);
  else {
    const kind = readAwk(program.text);
    if (kind === 'runs') call.report('runs_code', 'awk runs programs or reads other files', program.span);
    if (kind === 'writes')
      call.report('not_understood', 'awk writes files, and which ones shows only when it runs', program.span);
  }
};

const find: Judge = (call) => {
  const { roots, commands } = readFind(call.args);
  if (call.hasWord('-delete')) call.report('destroys', 'find deletes all that it finds');
  if (call.hasWord('-fprint', '-fprint0', '-fprintf', '-fls'))
    call.report('not_understood', 'find writes a list');
  const isInside = roots.every(
    (root) => ['here', 'all-here'].includes(call.scope(root)) && !root.text.startsWith('-'),
  );
  // Stars of find stand for hidden names as well. Where it may find them, a command that writes is judged with one.
  const names = findsProtected(call.args.map(({ text }) => text)) ? ['./*', './.git/*'] : ['./*'];
  for (const command of commands) {
    for (const name of names) {
      const words = command.map((word) => {
        if (!word.text.includes('{}')) return word;
        return isInside && word.known
          ? { ...word, text: word.text.replaceAll('{}', name), glob: true }
          : { ...word, text: '', known: false };
      });
      call.bench.command(words, call.span);
    }
  }
};

const fd: Judge = (call) => {
  const at = call.args.findIndex(({ text }) => /^(-[a-zA-Z]*[xX]|--exec.*)$/.test(text));
  if (at !== -1)
    call.bench.command(
      [...call.args.slice(at + 1), { ...call.args[at], text: '', known: false } as Call['args'][number]],
      call.span,
    );
};

/** A name alone shows it; a value sets it for the whole machine. */
const machineSetting =
  (isSet: (call: Call) => boolean): Judge =>
  (call) => {
    if (isSet(call)) call.report('system_write', `${call.program} changes a setting of the machine`);
  };

const pager: Judge = (call) => {
  if (call.args.some(({ text }) => text.startsWith('+!') || text.startsWith('+|')))
    call.report('runs_code', 'a pager that runs a command');
};

export const readers: Readonly<Record<string, Judge>> = {
  ...Object.fromEntries(plain.map((name) => [name, safe])),
  sort: (call) => {
    writesWith(
      () => call.has('-o', '--output'),
      () => call.valueOf('-o', '--output'),
    )(call);
    if (call.has('--compress-program')) call.report('runs_code', 'sort runs a program to compress');
  },
  rg: (call) => {
    if (call.has('--pre', '--hostname-bin')) call.report('runs_code', 'rg runs a program on each file');
  },
  uniq: (call) => {
    if (call.operands.length > 1) call.writes(call.operands.slice(1));
  },
  xxd: (call) => {
    if (call.operands.length > 1) call.writes(call.operands.slice(1));
  },
  less: pager,
  more: pager,
  sed,
  gsed: sed,
  awk,
  gawk: awk,
  mawk: awk,
  nawk: awk,
  find,
  gfind: find,
  fd,
  fdfind: fd,
  date: machineSetting((call) => call.has('-s', '--set')),
  hostname: machineSetting((call) => call.operands.length > 0),
  alias: (call) => {
    for (const arg of call.args) {
      const value = arg.text.slice(arg.text.indexOf('=') + 1);
      if (arg.text.includes('=') && arg.known)
        call.bench.script(value.replace(/^(["'])(.*)\1$/s, '$2'), arg.span, 'own');
    }
  },
  unalias: safe,
  trap: (call) => {
    const [action] = call.operands;
    if (action === undefined || action.text === '' || action.text === '-') return;
    if (action.known && !action.glob) call.bench.script(action.text, action.span, 'own');
    else call.report('not_understood', 'what the trap does shows only when it runs', action.span);
  },
  eval: (call) => {
    if (call.args.every(({ known, glob }) => known && !glob))
      call.bench.script(call.args.map(({ text }) => text).join(' '), call.span, 'own');
    else call.report('not_understood', 'eval runs text that is not known yet');
  },
  source: (call) => call.report('runs_code', 'source runs a file in this shell'),
  '.': (call) => call.report('runs_code', '. runs a file in this shell'),
};
