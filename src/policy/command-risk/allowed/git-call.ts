/** The allow-list of git: options before the sub-command, the sub-command with its options, and operands that do more than name something. */

import type { Call } from '../call.ts';
import { isProtectedText } from '../protected-writes.ts';
import type { Arg } from '../words.ts';
import { patched } from './archives.ts';
import { lastName } from './fetches.ts';
import { gitOptions, plainKey } from './git.ts';
import { readCall } from './option-list.ts';
import { type Allowed, optionList, refused, type Verdict } from './verdict.ts';

export const git: Allowed = (call) => {
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
      if (next?.known !== true || !isPlainSetting(next.text))
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

const isPlainSetting = (setting: string): boolean =>
  plainKey.test(setting.split('=')[0] ?? '') || /^safe\.barerepository=explicit$/i.test(setting);

/** Operands that do more than name a revision or a path. */
function gitShape(call: Call, sub: string, operands: readonly Arg[], names: ReadonlySet<string>): Verdict {
  const [first, second, third] = operands;
  const strange = operands.find(({ text }) => /::|^--/.test(text));
  if (strange !== undefined) return refused('an operand that git may take for a program', strange);
  const word = first?.text ?? '';
  if (sub === 'config') return gitConfig(operands, names);
  if (/^(fetch|pull|clone|ls-remote)$/.test(sub) && first !== undefined && !isRemote(word))
    return refused('an address that is not known as harmless', first);
  if (sub === 'clone' && isProtectedText(second?.text ?? lastName(word).replace(/\.git$/, '')))
    return refused('a folder that other programs execute from', second ?? first);
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
  if (sub === 'apply') return patched(call);
  if (/^(rm|mv|checkout|restore)$/.test(sub)) {
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
  if (isChange && !isPlainSetting(words.slice(0, 2).join('=')))
    return refused('a setting of git that is not known as harmless', operands[0]);
  if (!isChange && /credential|token|password|extraheader/i.test(key))
    return refused('a setting that may hold a secret', operands[0]);
  return {};
}
