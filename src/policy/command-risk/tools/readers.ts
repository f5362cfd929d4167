/** Programs that only read and print, and those of them that do more when they are asked to. */

import type { Call, Judge } from '../call.ts';

const safe: Judge = () => {};

const plain =
  '[ [[ : agrep arch base32 base64 basename bat bc break cal cat chardetect cksum cmp column comm compgen continue cut dc df diff diff3 dig-local dirname dirs du echo egrep exit expand expr factor false fgrep file fmt fold free function getconf getent getopts grep groups head help hexdump hostid htop id iconv info iostat jobs join jq lastlog let local locale locate logname look ls lsb_release lsblk lscpu lsmod lsof lspci lsusb man md5sum more mpstat namei nl nm nproc numfmt objdump od paste pathchk pgrep pidof pinky popd pr printenv printf ps pstree ptx pwd pwdx read readelf readlink realpath return rev rg screenfetch sdiff seq sha1sum sha224sum sha256sum sha384sum sha512sum shift shuf size sleep stat stty strings sum tac tail test tokei top tput tr tree true tsort tty type typeset ulimit umask uname unexpand uniq unset uptime users vmstat w wait wc whatis whereis which who whoami xxd yes yq zcat zgrep zless declare readonly export cloc fd-less neofetch nmon pv reset clear cd pushd chdir set shopt history jobs fg bg disown hash logout times suspend enable';

const writesWith =
  (test: (call: Call) => boolean, targets: (call: Call) => ReturnType<Call['valueOf']>): Judge =>
  (call) => {
    if (!test(call)) return;
    const target = targets(call);
    call.writes(target === undefined ? [] : [target]);
  };

/** GNU: the command `e` runs a program, `s///e` runs the result; `w` writes a file, alone or as a flag of `s`. */
const sedRuns = /(?:^|[;{}\n\d/])\s*e(?:\s|$)|s(.)(?:(?!\1).)*\1(?:(?!\1).)*\1[gimpI0-9]*e/;
const sedWrites = /(?:^|[;{}\n\d/])\s*w\s+\S|s(.)(?:(?!\1).)*\1(?:(?!\1).)*\1[gimpI0-9]*w\s/;

const sed: Judge = (call) => {
  const named = call.has('-e', '--expression', '-f', '--file');
  const script = named ? call.valueOf('-e', '--expression') : call.operands[0];
  if (call.has('-f', '--file')) call.report('runs_code', 'sed runs a script from a file');
  if (script !== undefined && !script.known) {
    call.report('not_understood', 'what sed does shows only when it runs', script.span);
  } else if (script !== undefined && sedRuns.test(script.text)) {
    call.report('runs_code', 'sed runs a program with e', script.span);
  } else if (script !== undefined && sedWrites.test(script.text)) {
    call.report('local_write', 'sed writes a file with w', script.span);
  }
  if (call.has('--in-place') || call.options.some(({ text }) => /^-[nEsrz]*i/.test(text))) {
    call.writes(call.operands.filter((arg) => arg !== script && arg.span !== script?.span));
  }
};

const awk: Judge = (call) => {
  const program = call.has('-f', '--file')
    ? undefined
    : call.operands.find(({ text }) => !/^[A-Za-z_]\w*=/.test(text) && text !== ',' && text !== ':');
  if (program === undefined) call.report('runs_code', 'awk runs a program from a file');
  else if (!program.known)
    call.report('not_understood', 'what awk does shows only when it runs', program.span);
  else if (/\bsystem\s*\(|\|\s*getline|\|&?\s*"|"\s*\|/.test(program.text)) {
    call.report('runs_code', 'awk runs programs', program.span);
  } else if (
    />>?\s*("|\$|[A-Za-z])/.test(program.text.replace(/[<>=!]=|\$\w+\s*>\s*\d/g, '')) &&
    /print[^}]*>/.test(program.text)
  ) {
    call.report('local_write', 'awk writes files', program.span);
  }
};

const find: Judge = (call) => {
  const { args } = call;
  if (args.some(({ known }) => !known) && args.some(({ text }) => /^-(exec|ok|delete)/.test(text))) {
    call.report('not_understood', 'where find looks shows only when it runs');
  }
  if (call.hasWord('-delete')) call.report('destroys', 'find deletes all that it finds');
  if (call.hasWord('-fprint', '-fprint0', '-fprintf', '-fls'))
    call.report('local_write', 'find writes a list');
  for (const [at, { text }] of args.entries()) {
    if (!/^-(exec|execdir|ok|okdir)$/.test(text)) continue;
    const rest = args.slice(at + 1);
    const end = rest.findIndex((word) => word.text === ';' || word.text === '+');
    const words = (end === -1 ? rest : rest.slice(0, end)).map((word) =>
      word.text.includes('{}') ? { ...word, text: '', known: false } : word,
    );
    call.bench.command(words, call.span);
  }
};

const fd: Judge = (call) => {
  const at = call.args.findIndex(({ text }) => /^(-x|-X|--exec|--exec-batch)$/.test(text));
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
  ...Object.fromEntries(plain.split(' ').map((name) => [name, safe])),
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
        call.bench.script(value.replace(/^(["'])(.*)\1$/s, '$2'), arg.span);
    }
  },
  unalias: safe,
  trap: (call) => {
    const [action] = call.operands;
    if (action === undefined || action.text === '' || action.text === '-') return;
    if (action.known) call.bench.script(action.text, action.span);
    else call.report('not_understood', 'what the trap does shows only when it runs', action.span);
  },
  eval: (call) => {
    if (call.args.every(({ known }) => known))
      call.bench.script(call.args.map(({ text }) => text).join(' '), call.span);
    else call.report('not_understood', 'eval runs text that is not known yet');
  },
  source: (call) => call.report('runs_code', 'source runs a file in this shell'),
  '.': (call) => call.report('runs_code', '. runs a file in this shell'),
};
