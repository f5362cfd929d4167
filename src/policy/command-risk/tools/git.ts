/** git and hg: what they only show, what they change here, what they lose, and how they are made to run programs. */

import { gitOptions } from '../allowed/git.ts';
import { readCall } from '../allowed/option-list.ts';
import { optionList } from '../allowed/verdict.ts';
import { Call, type Judge } from '../call.ts';
import type { Arg } from '../words.ts';

/** Keys of the configuration that name a program. */
const runningKey =
  /^(alias\.|core\.(pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy|alternaterefscommand)|diff\.(external|.*\.(command|textconv))|difftool\.|mergetool\.|merge\..*\.driver|filter\.|credential\.|gpg\.|sequence\.editor|uploadpack\.|receive\.|protocol\.ext|pager\.|interactive\.difffilter|include(if)?\.|sendemail\.|web\.|browser\.|man\.|init\.templatedir|remote\..*\.(uploadpack|receivepack|vcs)|submodule\..*\.update|url\.)/i;

const shows = new Set(
  'status log diff show blame annotate grep ls-files ls-tree ls-remote-local rev-parse rev-list describe shortlog reflog whatchanged cat-file name-rev merge-base for-each-ref show-ref show-branch count-objects fsck check-ignore check-attr var version help diff-tree diff-index diff-files range-diff cherry verify-commit verify-tag symbolic-ref-show archive-show bugreport'.split(
    ' ',
  ),
);
const fetches = new Set(['fetch', 'pull', 'clone', 'ls-remote', 'remote-update']);
const writes = new Set(
  'add commit merge rebase cherry-pick revert tag branch checkout switch restore reset stash init mv rm am apply notes worktree submodule bisect sparse-checkout archive bundle format-patch gc repack update-index write-tree commit-tree update-ref symbolic-ref pack-refs prune clean maintenance lfs replace rerere subtree config remote read-tree mailinfo hash-object'.split(
    ' ',
  ),
);

/** Going on with one of these runs what its files in `.git` list. */
const operations = new Set(['rebase', 'cherry-pick', 'revert', 'merge', 'am']);

/** Sub-command and a word by which something is lost that cannot be got back. */
const losses: ReadonlyArray<readonly [string, (call: Call, rest: readonly string[]) => boolean, string]> = [
  [
    'reset',
    (call) => call.has('--hard', '--merge', '--keep'),
    'reset --hard throws away what is not committed',
  ],
  [
    'clean',
    (call) => call.has('-f', '--force') && !call.has('-n', '--dry-run'),
    'clean -f removes what git does not know',
  ],
  [
    'checkout',
    (call, rest) => call.has('-f', '--force', '-B') || call.hasWord('--') || namesFiles(call, rest),
    'checkout throws away changes',
  ],
  ['rm', (call) => call.has('-f', '--force') && !call.has('--cached'), 'rm -f throws away changes'],
  [
    'restore',
    (call) => !call.hasWord('--staged') || call.hasWord('--worktree'),
    'restore throws away changes',
  ],
  [
    'switch',
    (call) => call.has('-f', '--force', '--discard-changes', '-C', '--force-create'),
    'switch throws away changes or commits',
  ],
  [
    'branch',
    (call, rest) =>
      call.has('-D', '-f', '--force', '-C') || (call.has('-M') && !(rest.length === 1 && rest[0] === 'main')),
    'branch -D, -f, -M and -C lose commits',
  ],
  ['stash', (_, rest) => rest[0] === 'drop' || rest[0] === 'clear', 'a stash is dropped'],
  [
    'reflog',
    (_, rest) => rest[0] === 'expire' || rest[0] === 'delete',
    'the reflog is what lost commits are found by',
  ],
  ['update-ref', (call) => call.has('-d'), 'a reference is deleted'],
  ['gc', (call) => call.hasWord('--prune'), 'gc --prune removes lost commits for good'],
  ['prune', () => true, 'prune removes lost commits for good'],
  ['filter-branch', () => true, 'filter-branch rewrites history'],
  ['filter-repo', () => true, 'filter-repo rewrites history'],
  [
    'worktree',
    (call, rest) => rest[0] === 'remove' && call.has('-f', '--force'),
    'a worktree is removed with its changes',
  ],
  [
    'push',
    (call, rest) =>
      call.has('-f', '--force', '--mirror', '--delete', '-d', '--prune') ||
      rest.some((word) => /^[+:]/.test(word)),
    'a push that replaces or deletes what others have',
  ],
];

/** Words of `checkout` that are files: git takes them for a branch only where there is one of that name. */
function namesFiles(call: Call, words: readonly string[]): boolean {
  if (call.has('-b', '--orphan', '--detach', '-t', '--track')) return false;
  const [first = '', ...more] = words;
  const isVersion = /\d$/.test(first) || /^origin\//.test(first);
  const isFile = /(^\.)|[*?]|\/$|\.[A-Za-z]\w*$/.test(first) || (first !== '-' && folders.test(first));
  return more.length > 0 || (isFile && !isVersion);
}

const folders =
  /^(app|apps|assets|bench|bin|build|client|cmd|components|config|core|data|dist|docker|docs?|examples|frontend|backend|include|images|internal|lib|libs|modules|packages|pages|pkg|public|resources|scripts|server|source|spec|src|static|styles|templates|tests?|tools|types|utils|vendor|web|README|LICENSE|Makefile|Dockerfile)(\/|$)/;

export const git: Readonly<Record<string, Judge>> = {
  git: judgeGit,
  hub: judgeGit,
  hg: judgeHg,
  svn: judgeHg,
};

function judgeGit(call: Call): void {
  const isElsewhere = call.args[0]?.text === '-C' || (call.bench.where.bases ?? []).length > 0;
  call.bench.note(isElsewhere ? 'repository-elsewhere' : 'repository', call.span);
  const [sub, ...rest] = subCommand(call);
  if (sub === undefined || rest.at(-1)?.text === '--help') return;
  if (!sub.known || rest.some((arg) => !arg.known && arg.raw.startsWith('$'))) {
    call.report('not_understood', 'what git does shows only when it runs', sub.span);
  }
  const words = rest.filter(({ text }) => !text.startsWith('-')).map(({ text }) => text);
  judgeRunning(call, sub.text, rest);
  // Without the options before the sub-command: -C is another one there.
  const own = new Call(call.bench, call.program, rest, { span: call.span });
  for (const [name, isLoss, why] of losses) {
    if (name === sub.text && isLoss(own, words)) call.report('destroys', why);
  }
  if (fetches.has(sub.text)) judgeFetch(call, sub.text, rest);
  else if (sub.text === 'push' || sub.text === 'send-email' || sub.text === 'request-pull') {
    call.report('sends_out', `git ${sub.text} sends commits away`);
  } else if (sub.text === 'submodule' && /^(update|add)$/.test(words[0] ?? '')) {
    call.report('plain_fetch', 'git fetches submodules');
  } else if (!shows.has(sub.text) && !onlyLists(call, sub.text, words)) {
    if (writes.has(sub.text) || losses.some(([name]) => name === sub.text))
      call.report('local_write', `git ${sub.text} changes the repository`);
    else call.report('unknown_tool', `git ${sub.text} is no command of git that is known here`, sub.span);
  }
}

/** Options before the sub-command, and what they bring about. */
function subCommand(call: Call): readonly Arg[] {
  const { args } = call;
  let at = 0;
  for (; at < args.length; at++) {
    const { text, span } = args[at] ?? { text: '', span: call.span };
    if (text === '-c' || text === '--config-env') {
      judgeKey(call, args[at + 1]);
      at += 1;
    } else if (text === '-C' || text === '--git-dir' || text === '--work-tree' || text === '--namespace')
      at += 1;
    else if (/^--exec-path=/.test(text))
      call.report('runs_code', 'git takes its programs from another folder', span);
    else if (!text.startsWith('-')) break;
  }
  return args.slice(at);
}

function judgeKey(call: Call, arg: Arg | undefined): void {
  if (arg === undefined) return;
  if (!arg.known) call.report('not_understood', 'a setting that is not known yet', arg.span);
  else if (runningKey.test(arg.text))
    call.report('runs_code', `${arg.text.split('=')[0]} names a program that git runs`, arg.span);
}

function judgeRunning(call: Call, sub: string, rest: readonly Arg[]): void {
  const runs =
    (sub === 'bisect' && rest[0]?.text === 'run') ||
    (sub === 'submodule' && rest[0]?.text === 'foreach') ||
    (sub === 'rebase' && call.has('-x', '--exec')) ||
    (operations.has(sub) && call.has('--continue', '--skip')) ||
    sub === 'difftool' ||
    sub === 'mergetool' ||
    sub === 'daemon' ||
    sub === 'instaweb' ||
    (sub === 'grep' && call.options.some(({ text }) => /^(-O|--open-files-in-pager)/.test(text))) ||
    rest.some(({ text }) => /^--(upload-pack|receive-pack|exec|extcmd|tool)(=|$)/.test(text));
  if (runs) call.report('runs_code', `git ${sub} runs a program`);
  if (sub === 'config')
    for (const arg of rest)
      if (!arg.text.startsWith('-') && rest.length > 1 && !call.has('--get')) judgeKey(call, arg);
}

function judgeFetch(call: Call, sub: string, rest: readonly Arg[]): void {
  const strange = rest.find(
    ({ text, known, reveals }) => !known || reveals === true || /^(ext|fd)::/.test(text),
  );
  if (strange !== undefined && /^(ext|fd)::/.test(strange.text))
    call.report('runs_code', 'git runs a program to connect', strange.span);
  else if (strange !== undefined)
    call.report('sends_out', `git ${sub} of an address that is not known yet`, strange.span);
  else call.report('plain_fetch', `git ${sub} fetches commits`);
  if (sub === 'clone') {
    const { operands } = readCall({ program: 'git', args: rest }, optionList(gitOptions['clone'] ?? 'text'));
    call.writes(operands.slice(1, 2));
  } else if (sub === 'pull') call.report('local_write', 'git pull changes the working tree');
}

/** Commands that show when nothing is to be changed: `git branch`, `git tag -l`, `git config --get`, `git stash list`. */
function onlyLists(call: Call, sub: string, words: readonly string[]): boolean {
  switch (sub) {
    case 'branch':
      return words.length === 0 && !call.has('-d', '-m', '-D', '-M', '--delete', '--move');
    case 'tag':
      return words.length === 0 || call.has('-l', '--list', '-n');
    case 'config':
      return call.has('--get', '-l', '--list', '--get-all', '--get-regexp') || words.length === 1;
    case 'stash':
      return words[0] === 'list' || words[0] === 'show';
    case 'remote':
      return words.length === 0 || words[0] === 'show' || words[0] === 'get-url';
    case 'worktree':
    case 'notes':
    case 'bundle':
      return words[0] === 'list' || words[0] === 'show' || words[0] === 'verify';
    case 'submodule':
      return words[0] === 'status' || words.length === 0;
    default:
      return false;
  }
}

function judgeHg(call: Call): void {
  const sub = call.first;
  if (call.hasWord('--config')) call.report('runs_code', 'a setting may name a program', call.span);
  if (
    /^(status|st|log|diff|id|identify|info|cat|annotate|blame|summary|branches|heads|tip|ls|list|propget)$/.test(
      sub,
    )
  )
    return;
  if (/^(pull|clone|incoming|outgoing|checkout|co|update|up)$/.test(sub))
    call.report('plain_fetch', `${call.program} ${sub} fetches`);
  else if (/^(push|commit|ci|import)$/.test(sub) && (call.program === 'svn' || sub === 'push')) {
    call.report('sends_out', `${call.program} ${sub} sends changes away`);
  } else if (/^(revert|purge|strip|rollback)$/.test(sub))
    call.report('destroys', `${call.program} ${sub} throws away changes`);
  else call.report('local_write', `${call.program} ${sub} changes the repository`);
}
