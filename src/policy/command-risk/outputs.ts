/** What commands print, by their kind: names below this folder, or a number. Pure. */

import type { Command, CommandNode, ParsedScript, PipelineNode } from 'unbash';
import { findsProtected } from './grammars/find.ts';
import { mayFindProtected } from './protected-writes.ts';
import { findsSecret, matchesSecret, namedIn, searched } from './secret-names.ts';

/** The stages of a script that is one pipeline and nothing else. */
function stagesOf(script: ParsedScript): readonly CommandNode[] | undefined {
  const [only, ...more] = script.commands;
  if (only === undefined || more.length > 0 || script.errors !== undefined) return undefined;
  if (only.command.type === 'AndOr') return undefined;
  return stages(only.command);
}

const stages = (node: PipelineNode): readonly CommandNode[] =>
  node.type === 'Pipeline' ? node.commands.flatMap((each) => stages(each)) : [node];

export const isListing = (script: ParsedScript): boolean => {
  const found = stagesOf(script);
  return found !== undefined && listsNames(found);
};

/** The last stage lists names, or passes on lines that a stage before it listed. */
export function listsNames(found: readonly CommandNode[]): boolean {
  const last = found.at(-1);
  if (last?.type !== 'Command' || last.redirects.some(({ operator }) => !/^>/.test(operator))) return false;
  const words = plainWords(last);
  if (words === undefined) return false;
  if (passesOn(words)) return listsNames(found.slice(0, -1));
  return lists(words);
}

/** Of what lists names: whether a file that other programs execute may be among them. */
export function listsProtected(found: readonly CommandNode[]): boolean {
  const lister = found.findLast((stage) => {
    const words = stage.type === 'Command' ? plainWords(stage) : undefined;
    return words !== undefined && !passesOn(words);
  });
  const [name = '', ...args] = (lister?.type === 'Command' ? plainWords(lister) : undefined) ?? [];
  const operands = args.filter((arg) => !arg.startsWith('-'));
  switch (name) {
    case 'find':
      return findsProtected(args);
    case 'ls':
      return args.some((arg) => /^-[a-zA-Z0-9]*[aA]/.test(arg)) || operands.some(mayFindProtected);
    case 'rg':
      return args.some((arg) => /^(-\w*(\.|u\w*u)|--hidden|--unrestricted)/.test(arg));
    case 'fd':
    case 'fdfind':
      return args.some((arg) => /^(-[a-zA-Z]*[Hu]|--hidden|--unrestricted|--no-ignore)/.test(arg));
    case 'git':
      return !operands.slice(1).some((arg) => /^\*\.\w+$/.test(arg) && !mayFindProtected(arg));
    default:
      return !isFiltered(args, operands.slice(1));
  }
}

/** `protected`: also names of files that other programs execute; `secret`: also of those that hold secrets. */
export type Listed = 'plain' | 'protected' | 'secret';

export const kindOfList = (found: readonly CommandNode[]): Listed =>
  listsSecrets(found) ? 'secret' : listsProtected(found) ? 'protected' : 'plain';

/** The output of this script names files that hold secrets. */
export const isSecretListing = (script: ParsedScript): boolean => listsSecrets(stagesOf(script) ?? []);

/** Hidden files are asked for, or a name like that of a secret is. */
export function listsSecrets(found: readonly CommandNode[]): boolean {
  const all = found.flatMap((stage) => (stage.type === 'Command' ? [plainWords(stage) ?? []] : []));
  const filters = all
    .filter((words) => /^[ef]?grep$/.test(words[0] ?? '') && passesOn(words))
    .filter((words) => !words.some((word) => /^-\w*v/.test(word)))
    .map((words) => words.slice(1).find((word) => !word.startsWith('-')) ?? '');
  if (filters.some(matchesSecret)) return true;
  if (filters.some((each) => /\\\.\w+\$$/.test(each))) return false;
  const [name = '', ...args] = all.findLast((words) => !passesOn(words)) ?? [];
  switch (name) {
    case 'find':
      return namedIn(args).some(findsSecret);
    case 'ls':
      return args.some((arg) => /^-[a-zA-Z0-9]*[aAf]/.test(arg));
    case 'git':
      return args.some((arg) => /^(-[a-z]*[oi]|--others|--ignored)/.test(arg));
    case 'rg':
    case 'fd':
    case 'fdfind':
      return args.some((arg) => /^(-[a-zA-Z]*(\.|H|u)|--hidden|--unrestricted|--no-ignore)/.test(arg));
    default:
      return (
        searched(
          name,
          args.map((text) => ({ text })),
        ).some(findsSecret) ||
        (args.includes('.') && args.some((arg) => /secret|passw|api_?key|private.?key|credential/i.test(arg)))
      );
  }
}

/** grep: files of some names, or below folders that are named. */
const isFiltered = (args: readonly string[], roots: readonly string[]): boolean =>
  args.some((arg) => /^--include=/.test(arg) && !mayFindProtected(arg.slice(10))) ||
  (roots.length > 0 && roots.every((root) => /^[\w*][\w*./-]*$/.test(root) && !/\/\./.test(root)));

/** An `ls` of several folders puts empty lines between them. */
export const listsEmptyLines = (found: readonly CommandNode[]): boolean =>
  found.some((stage) => {
    const words = stage.type === 'Command' ? plainWords(stage) : undefined;
    const operands = words?.slice(1).filter((word) => !word.startsWith('-')) ?? [];
    return words?.[0] === 'ls' && (operands.length > 1 || operands.some((word) => /[*?[]/.test(word)));
  });

/** Programs that print some of their lines and change none of them. */
const passesOn = ([name = '', ...args]: readonly string[]): boolean =>
  (/^(sort|uniq|head|tail|tac|shuf)$/.test(name) && args.every((arg) => /^(-[a-zA-Z0-9]+|\d+)$/.test(arg))) ||
  (/^[ef]?grep$/.test(name) &&
    args.filter((arg) => !arg.startsWith('-')).length === 1 &&
    args.every((arg) => !arg.startsWith('-') || /^-[vEFiwxe]+$/.test(arg)));

/** SECURITY: neither a way out of this folder nor a search for hidden files, which hold secrets. */
const isInside = (word: string): boolean =>
  !/^[/~]|(^|\/)\.\.(\/|$)|(^|[/*])\.[a-zA-Z*?[]|^id_|shadow/.test(word.replace(/^\*\.\w+$/, ''));

function lists([name = '', ...args]: readonly string[]): boolean {
  if (!args.every(isInside)) return false;
  switch (name) {
    case 'ls':
      return args.every((arg) => !arg.startsWith('-') || /^-[1aAdtrSU]+$/.test(arg));
    case 'find':
    case 'fd':
    case 'fdfind':
      return !args.some((arg) => /^-(printf|fprint|exec|ok|x|X|-exec|L|H|follow|-format)/.test(arg));
    case 'git': {
      // With a format it prints any text, and a log has messages.
      const [sub = ''] = args;
      const isNames = args.includes('--name-only') && !args.includes('-C');
      const formats = args.filter((arg) => /^--(format|pretty|oneline|stat|patch)|^-[psu]/.test(arg));
      if (/^(show|log)$/.test(sub)) return isNames && formats.length === 1 && formats[0] === '--format=';
      return formats.length === 0 && (sub === 'ls-files' || (/^diff(-tree)?$/.test(sub) && isNames));
    }
    case 'rg':
      return args.some((arg) => /^(-l|--files|--files-with-matches)$/.test(arg));
    case 'grep':
    case 'egrep':
    case 'fgrep':
      return (
        args.some((arg) => /^-[a-zA-Z]*[lL][a-zA-Z]*$|^--files-with(out)?-match/.test(arg)) &&
        // Another one, --label, prints what it says.
        args.every((arg) => !arg.startsWith('--') || /^--(files-with|include=|exclude|recursive$)/.test(arg))
      );
    default:
      return false;
  }
}

/** The output is a number whatever is counted; where that fails, nothing. `always`: it does not fail. */
export function isNumeric(script: ParsedScript, always?: 'always'): boolean {
  const last = stagesOf(script)?.at(-1);
  if (last?.type !== 'Command' || (always === 'always' && last.redirects.length > 0)) return false;
  const words = plainWords(last);
  if (words === undefined) return false;
  const [name = '', ...args] = words;
  const line = words.join(' ');
  if (name === 'wc') return args.length === 1 && /^-[lwcm]$/.test(args[0] ?? '');
  if (/^(nproc|date \+%(s|Y|m|d|H|M|S|j|Y%m%d)|id -[ug])$/.test(line)) return true;
  if (always === 'always') return false;
  if (/^[ef]?grep$/.test(name))
    return args[0] === '-c' && args.filter((arg) => !arg.startsWith('-')).length <= 2;
  return /^git rev-list --count [\w./~^-]+$/.test(line);
}

/** Undefined where a word is not known as it stands. */
function plainWords(command: Command): readonly string[] | undefined {
  if (command.name === undefined || command.prefix.length > 0) return undefined;
  const words: string[] = [];
  for (const word of [command.name, ...command.args]) {
    if (word.type !== 'Word') return undefined;
    if (word.parts?.some((part) => !/^(Literal|SingleQuoted|Glob)$/.test(part.type) && !isPlainQuote(part)))
      return undefined;
    words.push(word.value);
  }
  return words;
}

const isPlainQuote = (part: {
  readonly type: string;
  readonly parts?: readonly { readonly type: string }[] | undefined;
}): boolean => part.type === 'DoubleQuoted' && (part.parts ?? []).every(({ type }) => type === 'Literal');
