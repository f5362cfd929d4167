/** Allow-lists of programs with a small language or a shape of their own. */

import type { Call } from '../call.ts';
import { readAwk } from '../grammars/awk.ts';
import { readFind } from '../grammars/find.ts';
import { readSed } from '../grammars/sed.ts';
import { isProtectedText } from '../protected-writes.ts';
import type { Arg } from '../words.ts';
import { gitOptions, plainKey } from './git.ts';
import { readCall } from './option-list.ts';
import { subOptions } from './tools.ts';
import { type Allowed, byOptions, optionList, refused, type Verdict } from './verdict.ts';

const sedOptions =
  '-nErsuz -e: -l: -i? --quiet --silent --expression: --regexp-extended --in-place? --separate --null-data --unbuffered --line-length: --posix --debug --sandbox abbr text+read';

const sed: Allowed = (call) => {
  const { problem, texts, operands, names, values } = readCall(call, optionList(sedOptions));
  if (problem !== undefined) return { problem };
  const suffix = values.get('i')?.text ?? values.get('in-place')?.text ?? '';
  if (/[/*]/.test(suffix)) return refused('a suffix that names another folder');
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

const git: Allowed = (call) => {
  const { args } = call;
  let at = 0;
  for (; at < args.length; at++) {
    const arg = args[at] as Arg;
    const next = args[at + 1];
    if (!arg.known || arg.glob) return refused('what git does shows only when it runs', arg);
    if (
      /^(--no-pager|-P|--no-optional-locks|--literal-pathspecs|--icase-pathspecs|--version|--no-replace-objects)$/.test(
        arg.text,
      )
    )
      continue;
    if (arg.text === '-C') {
      const scope = next === undefined ? 'not-known' : call.scope(next);
      if (scope !== 'here' && scope !== 'all-here')
        return refused('git works in another folder', next ?? arg);
      at += 1;
    } else if (arg.text === '-c') {
      if (next?.known !== true || !plainKey.test(next.text.split('=')[0] ?? ''))
        return refused('a setting of git that is not known as harmless', next ?? arg);
      at += 1;
    } else if (arg.text.startsWith('-'))
      return refused(`git has the option ${arg.text}, which is not known as harmless`, arg);
    else break;
  }
  const sub = args[at];
  if (sub === undefined) return {};
  const notation = gitOptions[sub.text];
  const rest = args.slice(at + 1);
  if (rest.length === 1 && rest[0]?.text === '--help') return {};
  if (notation === undefined || !Object.hasOwn(gitOptions, sub.text))
    return refused(`git ${sub.text} is not known as harmless`, sub);
  const { problem, operands, names, written } = readCall(
    { program: `git ${sub.text}`, args: rest },
    optionList(notation),
  );
  if (problem !== undefined) return { problem };
  if (written.length > 0) call.writes(written);
  return gitShape(call, sub.text, operands, names);
};

/** Operands that do more than name a revision or a path. */
function gitShape(call: Call, sub: string, operands: readonly Arg[], names: ReadonlySet<string>): Verdict {
  const [first, second, third] = operands;
  const strange = operands.find(({ text }) => /::|^--/.test(text));
  if (strange !== undefined) return refused('an operand that git may take for a program', strange);
  const word = first?.text ?? '';
  if (sub === 'config') return gitConfig(operands, names);
  if (/^(fetch|pull|clone|ls-remote)$/.test(sub) && first !== undefined && !isRemote(word))
    return refused('an address that is not known as harmless', first);
  if (sub === 'clone' && second !== undefined && isProtectedText(second.text))
    return refused('a folder that other programs execute from', second);
  if (sub === 'remote' && !/^(|show|get-url)$/.test(word)) {
    const isPlain = word === 'add' && third !== undefined && isRemote(third.text) && call.bench !== undefined;
    if (!isPlain && !/^(remove|rename|prune)$/.test(word))
      return refused('a change of where git sends and fetches', first);
  }
  if (sub === 'submodule' && !/^(|status|summary)$/.test(word))
    return refused('submodules run what they bring', first);
  if (sub === 'bisect' && !/^(start|good|bad|new|old|skip|reset|log|next)$/.test(word))
    return refused('bisect may run a program', first);
  if (sub === 'worktree' && word !== 'list') return refused('a worktree is written elsewhere', first);
  if (sub === 'stash' && !/^(|list|show|push|pop|apply|drop|clear|save)$/.test(word))
    return refused('not known as harmless', first);
  if (sub === 'notes' && !/^(|list|show|add)$/.test(word)) return refused('not known as harmless', first);
  if (sub === 'symbolic-ref' && operands.length > 1) return refused('a reference is set by hand', second);
  if (/^(rm|mv)$/.test(sub)) {
    const target = operands.find(({ text, glob }) => isProtectedText(text, glob));
    if (target !== undefined) return refused('a file that other programs execute', target);
  }
  if (
    sub === 'init' &&
    first !== undefined &&
    call.scope(first) !== 'here' &&
    call.scope(first) !== 'all-here'
  )
    return refused('a repository elsewhere', first);
  return {};
}

const isRemote = (text: string): boolean =>
  /^(https?:\/\/[\w.:@-]+\/[\w./~+%-]*|(ssh|git):\/\/[\w.@-]+(:\d+)?\/[\w./~+-]*|[\w.-]+@[\w.-]+:[\w./~+-]+|[A-Za-z0-9][\w.-]*|\.\.?\/[\w./-]+)$/.test(
    text,
  );

function gitConfig(operands: readonly Arg[], names: ReadonlySet<string>): Verdict {
  const words = operands.map(({ text }) => text);
  if (words[0] === 'list') words.shift();
  const isGet =
    ['get', 'get-all', 'get-regexp', 'l', 'list'].some((name) => names.has(name)) || words[0] === 'get';
  if (words[0] === 'get') words.shift();
  const [key = ''] = words;
  const isChange = !isGet && (words.length > 1 || names.has('unset') || names.has('add'));
  if (isChange && ['global', 'system'].some((name) => names.has(name)))
    return refused('settings of git outside of this folder', operands[0]);
  if (isChange && !plainKey.test(key))
    return refused('a setting of git that is not known as harmless', operands[0]);
  if (!isChange && /credential|token|password|extraheader/i.test(key))
    return refused('a setting that may hold a secret', operands[0]);
  return {};
}

const curl: Allowed = (call) => {
  const { problem, operands, values, names, written } = readCall(
    call,
    optionList(
      '-sSLfIivkgGNqj046OR -o> -H: -A: -e: -m: -w: -r: -X: -y: -Y: -z: --silent --show-error --location --fail --fail-with-body --fail-early --head --include --verbose --insecure --globoff --compressed --no-buffer --ipv4 --ipv6 --http1.1 --http2 --http3 --tlsv1.2 --tlsv1.3 --progress-bar --no-progress-meter --output> --output-dir> --create-dirs --remote-name --header: --user-agent: --referer: --max-time: --connect-timeout: --write-out: --range: --request: --retry: --retry-delay: --retry-all-errors --retry-connrefused --retry-max-time: --max-redirs: --limit-rate: --url: --parallel --ssl-reqd --proto: --remove-on-error --styled-output --no-styled-output text',
    ),
  );
  if (problem !== undefined) return { problem };
  for (const [name, value] of values) {
    if (
      /^(H|header|w|write-out|A|user-agent|e|referer)$/.test(name) &&
      (/^@|%output\{/.test(value.text) || !value.known)
    )
      return refused('a value that curl takes from a file, or writes to one', value);
  }
  const method = values.get('X') ?? values.get('request');
  if (method !== undefined && !/^(GET|HEAD|OPTIONS)$/.test(method.text))
    return refused('a request that changes something there', method);
  const numbered = written.find(({ text }) => text.includes('#'));
  if (numbered !== undefined) return refused('a name that the address decides', numbered);
  if (written.length > 0) call.writes(written);
  const url = values.get('url');
  const addresses = url === undefined ? operands : [...operands, url];
  const strange = addresses.find((arg) => !isPlainAddress(arg));
  if (strange !== undefined) return refused('an address that is not plain http', strange);
  if (names.has('O') || names.has('remote-name')) {
    const target = addresses.find(({ text }) => isProtectedText(lastName(text)));
    if (target !== undefined) return refused('a file that other programs execute', target);
  }
  return {};
};

const lastName = (address: string): string => (address.split(/[?#]/)[0] ?? '').split('/').at(-1) ?? '';

/** http or https to a name or a plain address; never the service that hands out a machine's credentials. */
function isPlainAddress({ text, known }: Arg): boolean {
  if (!known) return false;
  const host = /^(?:https?:\/\/)?([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(?::\d+)?(?:[/?#]\S*)?$/i
    .exec(text)?.[1]
    ?.toLowerCase();
  if (host === undefined || /^-/.test(host)) return false;
  if (/^169\.254\.|^100\.100\.100\.200$|metadata|^\[?fd00:|^\[::ffff|^instance-data/.test(host)) return false;
  const isNumeric = /^(0x[0-9a-f]+|[0-9]+)(\.(0x[0-9a-f]+|[0-9]+))*$/.test(host);
  return !isNumeric || /^([1-9]\d{0,2}|0)(\.([1-9]\d{0,2}|0)){3}$/.test(host);
}

const wget: Allowed = (call) => {
  const { problem, operands, values, written } = readCall(
    call,
    optionList(
      '-qcNvS46 -nv -O> -P> -T: -t: -U: -w: --quiet --no-verbose --continue --timestamping --timeout: --tries: --output-document> --directory-prefix> --spider --no-check-certificate --server-response --user-agent: --show-progress --max-redirect: --no-clobber --header: text',
    ),
  );
  if (problem !== undefined) return { problem };
  const files = written.filter(({ text }) => text !== '-');
  if (files.length > 0) call.writes(files);
  const strange = operands.find((arg) => !isPlainAddress(arg));
  if (strange !== undefined) return refused('an address that is not plain http', strange);
  const target = operands.find(({ text }) => isProtectedText(lastName(text)));
  if (target !== undefined && !values.has('O') && !values.has('output-document'))
    return refused('a file that other programs execute', target);
  return {};
};

const tarOptions =
  '-cxtruzjJavpmkOhwSZ -f: -C> -X< -b: --list --extract --get --create --append --update --gzip --gunzip --bzip2 --xz --zstd --verbose --file: --directory> --exclude: --exclude-vcs --strip-components: --no-same-owner --no-same-permissions --keep-old-files --wildcards --auto-compress --totals --one-top-level? --to-stdout --same-permissions --preserve-permissions --numeric-owner --owner: --group: --mtime: --sort: --touch --skip-old-files --overwrite --no-recursion --full-time --utc dashes write';

/** The first word may be letters without a dash. */
const tar: Allowed = (call) => {
  const [first, ...rest] = call.args;
  if (first === undefined) return {};
  const isBare = first.known && /^[A-Za-z]+$/.test(first.text);
  // Letters without a dash take their values in order; with one value it is the same as behind a dash.
  if (
    isBare &&
    (/[CXbFIg].*f|f.*[CXbFIg]/.test(first.text) || !/^[^f]*f?$/.test(first.text.replace(/f(?=.)/g, '')))
  )
    return refused('letters of tar that take several values', first);
  const letters = first.text.replace('f', '');
  const args = isBare
    ? [{ ...first, text: `-${letters}${first.text.includes('f') ? 'f' : ''}` }, ...rest]
    : call.args;
  const { problem, values, names } = readCall({ program: call.program, args }, optionList(tarOptions));
  if (problem !== undefined) return { problem };
  const file = values.get('f') ?? values.get('file');
  if (file !== undefined && (!file.known || /:/.test(file.text)))
    return refused('an archive on another machine', file);
  const creates = ['c', 'r', 'u', 'create', 'append', 'update'].some((name) => names.has(name));
  if (creates && file !== undefined && file.text !== '-') call.writes([file]);
  return {};
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
  const [, ...statements] = words;
  if (statements.length === 0 || operands.length === 0)
    return refused('what sqlite3 does shows only when it runs');
  for (const arg of statements) {
    const isPlain =
      arg.known &&
      !/load_extension|writefile|readfile|edit\s*\(|fts3_tokenizer|attach|vacuum\s+into|shell|zipfile|fsdir|lsmode|pragma\s+(?!table_info|table_list|index_list|foreign_key_list|database_list|user_version|integrity_check|compile_options)/i.test(
        arg.text,
      ) &&
      (!/^\s*\./m.test(arg.text) ||
        /^\s*\.(tables|schema|databases|indexes|indices)(\s+[\w*%]+)?\s*$/.test(arg.text));
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
    const { problem } = readCall(
      { program: call.program, args: call.args.slice(isTwo ? 2 : 1) },
      optionList(notation),
    );
    const secret = call.args.find(
      ({ text }) => /^(secrets?|configmaps?\/|secret\/.*)$/i.test(text) && call.program === 'kubectl',
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
      if (/^--arg(json)?$/.test(call.args[at]?.text ?? '')) at += 2;
      else args.push(call.args[at] as Arg);
    }
    const { problem, texts } = readCall({ program: 'jq', args }, optionList(notation));
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
    ...withShape(
      'ps',
      (text) => /^([acdfghjlmrstuvwx]+|\d+)$/.test(text),
      'ps shows the environment of processes',
    ),
    ...withShape('getent', (text) => !/^(passwd|shadow|gshadow)$/.test(text), 'a list of users'),
    ...withShape('yq', (text) => !/load|system/.test(text), 'yq reads other files'),
    ...withShape(
      'ip',
      (text) =>
        /^(a|addr|address|l|link|r|route|n|neigh|rule|s|show|ls|list|get|dev|up|lo|(eth|wlan|en|wl|docker|br|veth|tun|wg)[\w-]*|[\d.]+)$/.test(
          text,
        ),
      'ip changes the network, or runs a program',
    ),
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
