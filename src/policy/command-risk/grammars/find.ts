/** The expression of find: tests that only look, and actions. Pure. */

import { mayFindProtected } from '../protected-writes.ts';
import type { Arg } from '../words.ts';

const alone = new Set(
  '-empty -print -print0 -ls -prune -quit -depth -d -daystart -mount -xdev -follow -noleaf -not -and -or -a -o ! ( ) , -true -false -readable -writable -executable -nouser -nogroup -warn -nowarn -ignore_readdir_race -noignore_readdir_race -H -L -P -E -X -s -x'.split(
    ' ',
  ),
);
const withValue = new Set(
  '-name -iname -path -ipath -wholename -iwholename -lname -ilname -regex -iregex -type -xtype -size -mtime -mmin -atime -amin -ctime -cmin -used -maxdepth -mindepth -perm -user -group -uid -gid -links -inum -regextype -fstype -printf'.split(
    ' ',
  ),
);
const withFile = new Set('-newer -anewer -cnewer -samefile'.split(' '));

export interface FindCall {
  readonly roots: readonly Arg[];
  /** Values of tests: patterns and numbers, no files. */
  readonly texts: ReadonlySet<Arg>;
  /** Commands of -exec and -ok, with `{}` as it stands. */
  readonly commands: ReadonlyArray<readonly Arg[]>;
  readonly strange: Arg | undefined;
}

export function readFind(args: readonly Arg[]): FindCall {
  const texts = new Set<Arg>();
  const commands: (readonly Arg[])[] = [];
  const roots: Arg[] = [];
  let strange: Arg | undefined;
  /** Where commands get what is found, a search for a restricted name is a use of it. */
  const values: Arg[] = [];
  let inExpression = false;
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] as Arg;
    const { text, known } = arg;
    if (!known || (arg.glob && /^[-(!,]/.test(text))) strange ??= arg;
    else if (/^-[HLP]$/.test(text) && !inExpression) texts.add(arg);
    else if (!inExpression && !/^(-.|[(),!]$)/.test(text)) {
      if (arg.glob && /^[*?[]/.test(text)) strange ??= arg;
      roots.push(arg);
    } else {
      inExpression = true;
      if (alone.has(text)) texts.add(arg);
      else if (withValue.has(text) || withFile.has(text) || /^-newer[aBcm][aBcmt]$/.test(text)) {
        at += 1;
        const value = args[at];
        if (value === undefined || !value.known) strange ??= value ?? arg;
        else if (withValue.has(text)) values.push(value);
      } else if (/^-(exec|ok)(dir)?$/.test(text)) {
        const rest = args.slice(at + 1);
        const end = rest.findIndex(
          (word, n) => word.text === ';' || (word.text === '+' && rest[n - 1]?.text === '{}'),
        );
        commands.push(end === -1 ? rest : rest.slice(0, end));
        if (end === -1 || /dir$/.test(text)) strange ??= arg;
        at += end === -1 ? rest.length : end + 1;
      } else strange ??= arg;
    }
  }
  if (commands.length === 0) for (const value of values) texts.add(value);
  return { roots, texts, commands, strange };
}

const isName = (word: string | undefined): boolean => /^-i?name$/.test(word ?? '');

/**
 * Whether what is found may be a file that other programs execute. Only the names that it must have speak against it: `-name x`, or
 * a choice of names in brackets.
 */
export function findsProtected(words: readonly string[]): boolean {
  const first = words.findIndex((word) => /^(-.|[(!])/.test(word) && !/^-[HLP]$/.test(word));
  const roots = (first === -1 ? words : words.slice(0, first)).filter((word) => !/^-[HLP]$/.test(word));
  if (roots.length > 0 && roots.every((root) => /^(\.\/)?\w[\w./-]*$/.test(root) && !/\/\./.test(root)))
    return roots.some(mayFindProtected);
  const names: string[] = [];
  const rest = first === -1 ? [] : words.slice(first);
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? '';
    if (/^-(o|or)$|^,$/.test(word)) return true;
    if (/^(!|-not)$/.test(word)) at += 2;
    else if (isName(word)) {
      names.push(rest[at + 1] ?? '*');
      at += 1;
    } else if (word === '(') {
      const end = rest.indexOf(')', at);
      const inside = rest.slice(at + 1, end);
      if (
        end === -1 ||
        !inside.every((one, n) => (n % 3 === 0 ? isName(one) : n % 3 === 1 || /^-(o|or)$/.test(one)))
      )
        return true;
      names.push(...inside.filter((_, n) => n % 3 === 1));
      at = end;
    }
  }
  return names.length === 0 || names.some(mayFindProtected);
}
