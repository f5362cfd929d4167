/** What commands print, by their kind: names below this folder, or a number. Pure. */

import type { Command, CommandNode, ParsedScript, PipelineNode } from 'unbash';

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
      const [sub = ''] = args;
      const isNames = args.some((arg) => arg === '--name-only');
      return (
        sub === 'ls-files' || (/^(diff|show|log|diff-tree)$/.test(sub) && isNames && !args.includes('-C'))
      );
    }
    case 'rg':
      return args.some((arg) => /^(-l|--files|--files-with-matches)$/.test(arg));
    case 'grep':
    case 'egrep':
    case 'fgrep':
      return args.some((arg) => /^-[a-zA-Z]*[lL][a-zA-Z]*$|^--files-with(out)?-match/.test(arg));
    default:
      return false;
  }
}

/** The output is a number whatever is counted. */
export function isNumeric(script: ParsedScript): boolean {
  const last = stagesOf(script)?.at(-1);
  if (last?.type !== 'Command') return false;
  const words = plainWords(last);
  if (words === undefined) return false;
  const [name = '', ...args] = words;
  const line = words.join(' ');
  if (name === 'wc') return args.length === 1 && /^-[lwcm]$/.test(args[0] ?? '');
  if (/^[ef]?grep$/.test(name))
    return args[0] === '-c' && args.filter((arg) => !arg.startsWith('-')).length <= 2;
  return /^(nproc|date \+%(s|Y|m|d|H|M|S|j|Y%m%d)|id -[ug]|git rev-list --count [\w./~^-]+)$/.test(line);
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
