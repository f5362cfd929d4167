/** Allow-lists of programs with a small language or a shape of their own. */

import type { Call } from '../call.ts';
import { readAwk } from '../grammars/awk.ts';
import { readFind } from '../grammars/find.ts';
import { readSed } from '../grammars/sed.ts';
import { isPlainSql } from '../grammars/sqlite.ts';
import { isProtectedText, plainSuffix } from '../protected-writes.ts';
import type { Arg } from '../words.ts';
import { patch, tar } from './archives.ts';
import { curl, wget } from './fetches.ts';
import { git } from './git-call.ts';
import { readCall } from './option-list.ts';
import { subOptions, subShapes } from './tools.ts';
import { type Allowed, byOptions, optionList, refused } from './verdict.ts';

const sedOptions =
  '-nErsuz -e: -l: -i? --quiet --silent --expression: --regexp-extended --in-place? --separate --null-data --unbuffered --line-length: --posix --debug --sandbox abbr text+read';

const sed: Allowed = (call) => {
  const { problem, texts, operands, names, values } = readCall(call, optionList(sedOptions));
  if (problem !== undefined) return { problem };
  const suffix = values.get('i')?.text ?? values.get('in-place')?.text ?? '';
  if (suffix !== '' && !plainSuffix.test(suffix)) return refused('a suffix that may form another name');
  const scripts = sedScripts(call, operands[0], names);
  for (const script of scripts) {
    if (!script.known || script.glob) return refused('what sed does shows only when it runs', script);
    const { strange, reads } = readSed(script.text);
    if (strange || reads.length > 0) return refused('a script of sed that is not known as harmless', script);
  }
  return { texts };
};

/** Values of -e, or the first operand. */
export function sedScripts(call: Call, first: Arg | undefined, names: ReadonlySet<string>): readonly Arg[] {
  if (!names.has('e') && !names.has('expression')) return first === undefined ? [] : [first];
  const found: Arg[] = [];
  for (const [at, arg] of call.args.entries()) {
    const attached = /^(?:-[nErsuz]*e(.+)|--e[a-z]*=([\s\S]*))$/s.exec(arg.text);
    const next = call.args[at + 1];
    if (attached !== null) found.push({ ...arg, text: attached[1] ?? attached[2] ?? '' });
    else if (/^(-[nErsuz]*e|--e[a-z]*)$/.test(arg.text) && next !== undefined) found.push(next);
  }
  return found;
}

const awk: Allowed = (call) => {
  const { problem, texts, operands } = readCall(
    call,
    optionList('-F: -v: --field-separator: --assign: --posix --re-interval text+read'),
  );
  if (problem !== undefined) return { problem };
  const [program] = operands;
  if (program === undefined || !program.known || program.glob)
    return refused('what awk does shows only when it runs', program);
  return readAwk(program.text) === 'strange'
    ? refused('a program of awk that is not known as harmless', program)
    : { texts };
};

const find: Allowed = (call) => {
  const { strange, texts } = readFind(call.args);
  return strange === undefined
    ? { texts }
    : refused(`find has ${strange.text || 'a word'}, which is not known as harmless`, strange);
};

const dd: Allowed = (call) => {
  const strange = call.args.find(
    ({ text, known }) =>
      !known || !/^(if|of|bs|ibs|obs|cbs|count|skip|seek|status|conv|iflag|oflag)=/.test(text),
  );
  return strange === undefined ? {} : refused('not known as harmless', strange);
};

const compiler: Allowed = (call) => {
  const plain =
    /^(-(c|S|E|v|g[0-3]?|ggdb|O[0-3sgz]?|W[a-z0-9=+-]*|w|std=[\w+]+|ansi|pedantic|pthread|shared|static|fPIC|fpic|fPIE|pie|lm|lpthread|m(32|64|arch=[\w-]+|tune=[\w-]+)|D\w+(=[\w."+-]*)?|U\w+|I[\w./-]*|L[\w./-]*|l[\w+-]+|o|MMD|MP|f(no-)?[a-z-]+)|--version)$/;
  const outputs = call.args.filter((_, at) => call.args[at - 1]?.text === '-o');
  if (outputs.length > 1) call.writes(outputs);
  const bad = /^-(f(plugin|profile|dump|use-ld|compare|stack-usage|sanitize-.*list|module)|W[lap],)/;
  const strange = call.args.find(
    ({ text, known }) =>
      !known || /^@/.test(text) || (/^-/.test(text) && (!plain.test(text) || bad.test(text))),
  );
  return strange === undefined
    ? {}
    : refused(`${call.program} has ${strange.text || 'a word'}, which is not known as harmless`, strange);
};

/** Functions of SQLite that read, write or load files, and statements that open others. */
const sqlite: Allowed = (call) => {
  const { problem, operands } = readCall(call, optionList('-v none'.replace('none', 'text')));
  const words = call.args.filter(
    ({ text }) =>
      !/^-(readonly|header|column|csv|json|line|list|box|table|markdown|noheader|bail|batch)$/.test(text),
  );
  if (words.some(({ text }) => /^-/.test(text)))
    return problem === undefined ? refused('an option of sqlite3') : { problem };
  const [database, ...statements] = words;
  if (database?.text.split(/[:?]/).some((each) => isProtectedText(each)))
    return refused('a file that other programs execute', database);
  if (statements.length === 0 || operands.length === 0)
    return refused('what sqlite3 does shows only when it runs');
  for (const arg of statements) {
    const isPlain = arg.known && isPlainSql(arg.text);
    if (!isPlain) return refused('a statement that is not known as harmless', arg);
  }
  return { texts: new Set(statements) };
};

/** Sub-commands, one or two words, each with its own list. */
const bySub =
  (subs: Readonly<Record<string, string>>): Allowed =>
  (call) => {
    const [first, second] = call.args;
    if (first === undefined) return {};
    if (call.args.length === 1 && /^(-v|-V|-h|--version|--help)$/.test(first.text)) return {};
    if (!first.known || first.glob) return refused('what it does shows only when it runs', first);
    const two = `${first.text}.${second?.text ?? ''}`;
    const isTwo = second?.known === true && Object.hasOwn(subs, two);
    if (!isTwo && !Object.hasOwn(subs, first.text))
      return refused(`${call.program} ${first.text} is not known as harmless`, first);
    const notation = subs[isTwo ? two : first.text] ?? '';
    const { problem, operands } = readCall(
      { program: call.program, args: call.args.slice(isTwo ? 2 : 1) },
      optionList(notation),
    );
    const shape = subShapes[`${call.program} ${first.text}`];
    if (problem === undefined && shape?.test(operands.map(({ text }) => text).join(' ')) === false)
      return refused('an operand that is not known as harmless', operands[0]);
    const secret = call.args.find(
      ({ text }) => /(^|[,/])(secrets?|configmaps?\/)([,./]|$)/i.test(text) && call.program === 'kubectl',
    );
    return secret === undefined ? { problem } : refused('secrets of a cluster', secret);
  };

const only =
  (shape: RegExp, why: string): Allowed =>
  (call) => {
    const strange = call.args.find(({ text, known }) => !known || !shape.test(text));
    return strange === undefined ? {} : refused(why, strange);
  };

const also =
  (notation: string, shape: (text: string) => boolean, why: string): Allowed =>
  (call) => {
    const { operands } = readCall(call, optionList(notation));
    const strange = operands.find(({ text }) => !shape(text));
    const verdict = byOptions(notation)(call);
    return verdict.problem === undefined && strange !== undefined ? refused(why, strange) : verdict;
  };

/** `--arg name value` has two values. */
const jq =
  (notation: string): Allowed =>
  (call) => {
    const args: Arg[] = [];
    for (let at = 0; at < call.args.length; at++) {
      if (/^--arg(json)?$/.test(call.args[at]?.text ?? '')) {
        const open = call.args.slice(at + 1, at + 3).find(({ splits }) => splits === true);
        if (open !== undefined) return refused('a word that is not known yet may become several', open);
        at += 2;
      } else args.push(call.args[at] as Arg);
    }
    const { problem, texts, operands } = readCall({ program: 'jq', args }, optionList(notation));
    const [program] = operands;
    if (problem === undefined && /(?<![.\w"])(import|include)\b/.test(program?.text ?? ''))
      return refused('jq reads another file', program);
    return { problem, texts };
  };

const names = <T>(text: string, value: T): Readonly<Record<string, T>> =>
  Object.fromEntries(text.split(' ').map((name) => [name, value]));

export function programAllowed(readers: Readonly<Record<string, string>>): Readonly<Record<string, Allowed>> {
  const withShape = (
    name: string,
    shape: (text: string) => boolean,
    why: string,
  ): Record<string, Allowed> => ({
    [name]: also(readers[name] ?? 'none', shape, why),
  });
  return {
    ...Object.fromEntries(Object.entries(subOptions).map(([name, subs]) => [name, bySub(subs)])),
    ...names('sed gsed', sed),
    ...names('awk gawk mawk nawk', awk),
    ...names('find gfind', find),
    git,
    curl,
    wget,
    ...names('tar gtar bsdtar', tar),
    dd,
    ...names('gcc cc g++ c++ clang clang++', compiler),
    ...names('sqlite3 sqlite', sqlite),
    jq: jq(readers['jq'] ?? 'none'),
    ...withShape('date', (text) => text.startsWith('+'), 'date sets the clock'),
    ...withShape(
      'less',
      (text) => !text.startsWith('+') || /^\+(F|G|\d+)$/.test(text),
      'a command of the pager',
    ),
    ...withShape('more', (text) => !text.startsWith('+'), 'a command of the pager'),
    ps: (call) => {
      const shown = call.args.find(({ text, known }) => !known || /environ/i.test(text));
      if (shown !== undefined) return refused('ps shows the environment of processes', shown);
      const why = 'ps shows the environment of processes';
      return also(readers['ps'] ?? 'none', (text) => /^([acdfghjlmrstuvwx]+|\d+)$/.test(text), why)(call);
    },
    systemctl: (call) => {
      const { operands } = readCall(call, optionList(readers['systemctl'] ?? 'none'));
      const [verb] = operands;
      const shown = call.args.find(({ text, known }) => !known || /environ/i.test(text));
      if (shown !== undefined) return refused('systemctl shows the environment of a service', shown);
      if (verb !== undefined && !/^(status|show|list-[\w-]+|is-[\w-]+|cat|get-default|help)$/.test(verb.text))
        return refused('systemctl changes the machine', verb);
      return byOptions(readers['systemctl'] ?? 'none')(call);
    },
    ...withShape('service', (text) => /^\w[\w@.-]*$/.test(text), 'a script that is not a service'),
    ...withShape(
      'sysctl',
      (text) => /^\w[\w.*/-]*$/.test(text) && !/\.\./.test(text),
      'not the name of a setting',
    ),
    patch,
    tsc: (call) => {
      const showsOnly = call.hasWord('--noEmit', '--showConfig', '--listFilesOnly', '--version', '-v');
      const verdict = byOptions(readers['tsc'] ?? 'none')(call);
      // The file of settings names the folder, and a source the end of the name.
      return verdict.problem !== undefined || showsOnly ? verdict : refused('where tsc writes is not known');
    },
    ruff: (call) => {
      if (call.first === 'server') return refused('ruff server has no end');
      return byOptions(readers['ruff'] ?? 'none')(call);
    },
    tmux: only(/^(ls|list-\w+)$/, 'an option of tmux'),
    screen: only(/^-(ls|list)$/, 'an option of screen'),
    ldconfig: only(/^-p$/, 'ldconfig changes the machine'),
    ...withShape('man', (text) => /^[\w+][\w.+:-]*$/.test(text), 'a file in the place of a page'),
    ...withShape('info', (text) => /^[\w+][\w.+:-]*$/.test(text), 'a file in the place of a page'),
    ...withShape('getent', (text) => !/^(passwd|shadow|gshadow)$/.test(text), 'a list of users'),
    ...withShape('yq', (text) => !/load|system|eval|include/.test(text), 'yq reads other files'),
    ip: (call) => {
      // `link s` is `link set`.
      const set = call.operands.find(
        ({ text }, at) => text === 's' && /^l/.test(call.operands[at - 1]?.text ?? ''),
      );
      if (set !== undefined) return refused('ip changes the network', set);
      return also(
        readers['ip'] ?? 'none',
        (text) =>
          /^(a|addr|address|l|link|r|route|n|neigh|rule|s|show|ls|list|get|dev|up|lo|(eth|wlan|en|wl|docker|br|veth|tun|wg)[\w-]*|[\d.]+)$/.test(
            text,
          ),
        'ip changes the network, or runs a program',
      )(call);
    },
    ifconfig: only(/^(-a|-s|[a-z]+\d+)$/, 'ifconfig changes the network'),
    openssl: only(
      /^(version|x509|req|rand|dgst|verify|crl|-a|-in|-noout|-text|-dates|-subject|-issuer|-fingerprint|-serial|-enddate|-startdate|-hex|-base64|-(sha|md)\w+|-inform|PEM|DER|pem|der|\d+|[\w./-]+\.(pem|crt|cer|csr|der|txt|json|gz|tgz|zip|bin))$/,
      'an option of openssl that is not known as harmless',
    ),
    gpg: only(
      /^(--verify|--list-keys|--fingerprint|-k|[\w./-]+\.(sig|asc|gpg|gz|zip|tgz|xz|txt)|--with-colons)$/,
      'an option of gpg',
    ),
    'ssh-add': only(/^-[lL]$/, 'ssh-add changes the agent'),
  };
}
