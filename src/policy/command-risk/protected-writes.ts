/** Files that a host executes unasked: a write to one of them is the execution of code. Pure. */

import { executedNames } from '../executed-names.ts';
import { foldedName, isProtectedPath } from '../protected-names.ts';
import { canBe, canBeHidden, isPattern } from './globs.ts';

/** Read from a home at the start of a shell, a session or a program, besides what a project has (`executed-names.ts`). */
const homeNames = [
  '.profile .bash_profile .bash_login .bash_logout .bash_aliases .zshenv .zprofile .zlogin .zlogout .login .logout',
  '.bashrc .zshrc .kshrc .cshrc .tcshrc .shrc .inputrc .xinitrc .xsession .xprofile .pam_environment',
  '.nvimrc .emacs .emacs.d .gitconfig .gitmodules .hgrc .hg .svn .yarnrc .netrc .ssh .gnupg .forward',
  '.tmux.conf .screenrc .pythonrc .lessfilter .lesskey .curlrc .wgetrc',
  '.cargo .config .local autostart authorized_keys crontab cron.d cron.daily cron.hourly',
  'sitecustomize.py usercustomize.py',
  // Of a project: read where only the version of a program is asked for.
  '.mvn .sbtopts .jvmopts',
].flatMap((line) => line.split(' '));

const listed = ['.git', ...homeNames, ...executedNames.map(({ name }) => name.toLowerCase())].filter(
  (name) => !/[*/]/.test(name),
);

/** What makes a folder a git directory, whatever the folder is called; and repositories without a work tree, `x.git`. */
const gitName = /^(head|commondir|.+\.git)$/;

/** Whether a part of the path is such a name, or a pattern that can become one. */
export function isProtectedText(path: string, glob = false): boolean {
  if (isProtectedPath(Buffer.from(path))) return true;
  return path.split('/').some((each) => {
    const part = foldedName(each);
    if (part === '') return false;
    if (homeNames.includes(part) || gitName.test(part)) return true;
    // A pattern of letters for a name without a dot is one in a thousand; `build/*` is everyday.
    return (
      glob &&
      isPattern(part) &&
      listed.some((name) => (name.startsWith('.') || /\w{3}/.test(part)) && canBe(part, name))
    );
  });
}

/** Ends of names of copies that no protected name has. */
export const plainSuffix = /^(~|[.~_-](bak|backup|old|orig|save|saved|tmp|\d+))$/;

/** In a git directory. */
const gitFiles =
  'config hooks head commondir pre-commit pre-push pre-rebase commit-msg prepare-commit-msg post-checkout post-commit post-merge'.split(
    ' ',
  );

/** Whether a search for files of this name, which may be a pattern, finds one of them. */
export const mayFindProtected = (name: string): boolean =>
  isProtectedText(name) || [...listed, ...gitFiles].some((each) => canBeHidden(name.toLowerCase(), each));
