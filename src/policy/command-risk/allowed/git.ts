/** Harmless options of git's sub-commands. Notation: `option-list.ts`. */

/** Of `log`, `show` and `diff`: what is shown, and how. None of --output, --ext-diff, --textconv. */
const shown =
  '-pusPaRbwzWBMCDil -# -U: -S: -G: -L: -O< -n: -M? -C? -B? --patch --no-patch --raw --patch-with-raw --stat? --numstat --shortstat --dirstat? --cumulative --summary --name-only --name-status --compact-summary --color? --no-color --color-words? --color-moved? --word-diff? --word-diff-regex: --no-renames --rename-empty --check --full-index --binary --abbrev? --find-renames? --find-copies? --find-copies-harder --diff-filter: --pickaxe-regex --pickaxe-all --relative? --text --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-space-at-eol --ignore-cr-at-eol --unified: --inter-hunk-context: --function-context --exit-code --quiet --no-ext-diff --no-textconv --ignore-submodules? --submodule? --src-prefix: --dst-prefix: --no-prefix --minimal --patience --histogram --diff-algorithm: --cached --staged --merge-base --no-index -c --cc -m --ours --theirs --base';
const logged =
  '-ic -i -E -F -g --oneline --graph --decorate? --no-decorate --decorate-refs: --all --branches? --tags? --remotes? --glob: --exclude: --max-count: --skip: --since: --after: --until: --before: --author: --committer: --grep: --all-match --invert-grep --regexp-ignore-case --extended-regexp --fixed-strings --perl-regexp --merges --no-merges --first-parent --follow --format: --pretty? --abbrev-commit --no-abbrev-commit --date: --relative-date --parents --children --left-right --cherry-pick --cherry-mark --cherry --boundary --reverse --topo-order --date-order --author-date-order --source --notes? --no-notes --show-signature --full-history --simplify-by-decoration --walk-reflogs --stdin --count --left-only --right-only --ancestry-path --no-walk? --full-diff --log-size --mailmap --use-mailmap --min-parents: --max-parents: --no-pager --encoding: --expand-tabs? --not';

export const gitOptions: Readonly<Record<string, string>> = {
  status:
    '-sbvuz -u? --short --branch --porcelain? --long --verbose --untracked-files? --ignored? --ignore-submodules? --show-stash --ahead-behind --no-ahead-behind --renames --no-renames --find-renames? --column? --no-column text',
  log: `${logged} ${shown} text`,
  shortlog: `-senc -sn ${logged} --summary --numbered --email --group: text`,
  whatchanged: `${logged} ${shown} text`,
  show: `${logged} ${shown} text`,
  diff: `${shown} text`,
  'diff-tree': `-rtv --root --stdin --no-commit-id ${shown} text`,
  'diff-index': `${shown} text`,
  'diff-files': `${shown} text`,
  'range-diff': `--creation-factor: --no-dual-color ${shown} text`,
  blame:
    '-bcefhlnpstwCM -L: -C? -M? --porcelain --line-porcelain --show-name --show-number --show-email --since: --date: --reverse --first-parent --incremental --root --color-lines --abbrev: text',
  annotate: '-L: text',
  grep: '-acEFGhHilLnoPpqrvwWz -# -A: -B: -C: -e: -m: -f< --cached --untracked --no-exclude-standard --text --ignore-case --word-regexp --invert-match --extended-regexp --basic-regexp --perl-regexp --fixed-strings --line-number --column --files-with-matches --name-only --files-without-match --count --color? --no-color --break --heading --show-function --function-context --context: --after-context: --before-context: --and --or --not --all-match --quiet --max-depth: --recursive --only-matching --max-count: text',
  'ls-files':
    '-cdimostuvzf -x: -X< --cached --deleted --modified --others --ignored --stage --unmerged --killed --directory --no-empty-directory --exclude: --exclude-from< --exclude-standard --error-unmatch --full-name --recurse-submodules --abbrev? --eol --format: --deduplicate text',
  'ls-tree':
    '-drtlz --long --name-only --name-status --object-only --full-name --full-tree --abbrev? --format: text',
  'rev-parse':
    '--abbrev-ref? --short? --verify --quiet -q --symbolic --symbolic-full-name --show-toplevel --show-prefix --show-cdup --show-superproject-working-tree --git-dir --git-common-dir --git-path: --absolute-git-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository --is-shallow-repository --all --branches? --tags? --remotes? --path-format: text',
  'rev-list': `${logged} --objects --objects-edge --disk-usage --use-bitmap-index --timestamp --header -n: text`,
  describe:
    '--all --tags --long --always --contains --abbrev: --dirty? --broken? --match: --exclude: --exact-match --first-parent --candidates: text',
  reflog: `${logged} ${shown} text`,
  'cat-file': '-tsep --batch-check? --batch-all-objects text',
  'name-rev': '--name-only --tags --refs: --all --always text',
  'merge-base': '-a --all --octopus --is-ancestor --fork-point --independent text',
  'for-each-ref':
    '--count: --sort: --format: --points-at: --merged? --no-merged? --contains? --color? --ignore-case text',
  'show-ref': '-dhqs --head --heads --tags --dereference --hash? --verify --quiet --abbrev? text',
  'show-branch': '-ar --all --remotes --list --current --sha1-name --no-name text',
  'count-objects': '-vH --verbose --human-readable none',
  fsck: '--full --no-full --unreachable --dangling --no-dangling --no-progress --connectivity-only --strict --name-objects text',
  'check-ignore': '-qvnz --quiet --verbose --no-index --non-matching text',
  'check-attr': '-az --all --cached text',
  'check-ref-format': '--branch --allow-onelevel text',
  var: '-l text',
  version: '--build-options none',
  help: '-ag --all --guides text',
  cherry: '-v --abbrev? text',
  'symbolic-ref': '-q --short --quiet text',
  'verify-commit': '-v --raw text',
  'verify-tag': '-v --raw text',
  'hash-object': '-t: text',
  branch:
    '-avvrlqfdDmMcCt -u: --all --remotes --list --show-current --verbose --contains? --no-contains? --merged? --no-merged? --sort: --points-at: --format: --column? --no-column --color? --no-color --abbrev: --delete --move --copy --force --track? --no-track --set-upstream-to: --unset-upstream --quiet --ignore-case text',
  tag: '-lafdn -n? -m: --list --annotate --message: --sort: --contains? --no-contains? --merged? --points-at: --format: --column? --force --delete --color? -i text',
  remote: '-v --verbose text',
  stash:
    '-pukqaS -m: --patch --include-untracked --keep-index --no-keep-index --quiet --all --message: --staged --index --stat --name-only --name-status -U: text',
  config:
    '-lz --get --get-all --get-regexp --list --show-origin --show-scope --name-only --global --local --system --worktree --type: --bool --int --null --default: --includes --no-includes --unset --add text',
  worktree: '-bfdv -b: -B: --porcelain --verbose --force --detach text',
  submodule: '-q --quiet --cached --recursive --summary-limit: text',
  notes: '-m: --ref: text',
  add: '-AunvNfip --all --update --dry-run --verbose --intent-to-add --force --no-all --ignore-removal --renormalize --chmod: --refresh --ignore-errors text',
  commit:
    '-aqvsnep -m: -C: -c: -F< --all --quiet --verbose --message: --amend --no-edit --signoff --no-verify --allow-empty --allow-empty-message --dry-run --short --porcelain --author: --date: --reset-author --fixup: --squash: --reuse-message: --file< --no-gpg-sign --only --include --status --no-status --trailer: text',
  // Without --continue and --skip, here and below: a sandbox may have planted the operation with the commands that it lists.
  merge:
    '-qvn -m: -s: -X: --no-ff --ff --ff-only --squash --no-squash --abort --quit --no-commit --commit --no-edit --message: --strategy: --strategy-option: --stat --no-stat --quiet --verbose --allow-unrelated-histories --log? --autostash --no-autostash --no-gpg-sign text',
  rebase:
    '-qvf -X: -s: --onto: --abort --quit --autostash --no-autostash --autosquash --no-autosquash --rebase-merges? --keep-base --quiet --verbose --root --force-rebase --no-ff --strategy: --strategy-option: --update-refs --stat --no-stat --fork-point text',
  'cherry-pick':
    '-nxse -m: -X: --no-commit --abort --quit --mainline: --ff --signoff --allow-empty --keep-redundant-commits --strategy: --strategy-option: text',
  revert: '-n -m: --no-commit --no-edit --abort --quit --mainline: --signoff text',
  checkout:
    '-bBqtfl -b: -B: --track? --no-track --quiet --detach --orphan: --ours --theirs --merge --conflict: --progress --no-progress --guess --no-guess --force text',
  switch:
    '-qdtfm -c: -C: --create: --force-create: --detach --track? --no-track --guess --no-guess --orphan: --quiet --discard-changes --force --merge text',
  restore: '-SWqp -s: --staged --worktree --source: --quiet --ours --theirs --progress text',
  reset: '-qNp --soft --mixed --hard --keep --merge --quiet --no-refresh --intent-to-add text',
  // Without --bare and --mirror: the configuration of such a repository lies among ordinary files.
  init: '-q -b: --quiet --initial-branch: text',
  mv: '-fknv --force --dry-run --verbose text',
  rm: '-fnrq --force --dry-run --cached --ignore-unmatch --quiet text',
  clean: '-dfnqxX -e: --force --dry-run --quiet --exclude: text',
  apply:
    '-pvRN3z -p: -C: --stat --numstat --summary --check --index --cached --3way --reverse --reject --verbose --exclude: --include: --whitespace: --recount --unidiff-zero --ignore-whitespace --allow-empty read',
  bisect: 'text',
  gc: '-q --auto --quiet --aggressive none',
  'update-index':
    '-q --refresh --really-refresh --chmod: --assume-unchanged --no-assume-unchanged --skip-worktree --no-skip-worktree text',
  'write-tree': 'none',
  'pack-refs': '--all --no-prune none',
  fetch:
    '-aptvqnk -j: --all --prune --tags --no-tags --depth: --deepen: --unshallow --verbose --quiet --dry-run --force --multiple --jobs: --progress --no-progress --shallow-since: --set-upstream --prune-tags --append --no-recurse-submodules text',
  pull: '-qvnr -X: -s: --rebase? --no-rebase --ff-only --ff --no-ff --all --prune --tags --no-tags --depth: --quiet --verbose --autostash --no-autostash --no-edit --no-commit --squash --stat --no-stat --progress --allow-unrelated-histories text',
  clone:
    '-qvn -b: -o: --branch: --depth: --single-branch --no-single-branch --no-tags --quiet --verbose --progress --no-checkout --origin: --shallow-since: --filter: --sparse text',
  'ls-remote': '-hqt --heads --tags --refs --quiet --exit-code --get-url --sort: --symref --branches text',
};

/** Keys of the configuration that only change how something looks or who is named. */
export const plainKey =
  /^(user\.(name|email)|color\.[\w.]+|core\.(quotepath|autocrlf|eol|ignorecase|filemode|precomposeunicode|longpaths|abbrev|logallrefupdates)|advice\.\w+|pull\.(rebase|ff)|push\.(default|autosetupremote)|init\.defaultbranch|fetch\.prune|merge\.(conflictstyle|ff)|diff\.(colormoved|renames|algorithm|mnemonicprefix|noprefix|context)|log\.(date|decorate|abbrevcommit)|rebase\.(autostash|autosquash)|rerere\.enabled|branch\.[\w./-]+\.(remote|merge|rebase|description)|branch\.(sort|autosetuprebase)|tag\.sort|status\.\w+|column\.\w+|gc\.auto|i18n\.\w+)$/i;
