/** Programs whose first words say what they do: the harmless ones of those, each with its options. */

/** `program sub-command` (or two sub-commands) to the notation of `option-list.ts`. */
export const subOptions: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  npm: {
    ...each(
      'ls list ll la',
      '-agl --all --depth: --long --json --parseable --global --omit: --include: --prod --production --link text',
    ),
    ...each('why explain', '--json text'),
    ...each('root prefix bin', '-g --global none'),
    ...each('view info show outdated search', '-agl --json --long --all --global text'),
    audit: '--json --omit: --audit-level: --production none',
    ...each('config.get config.list config.ls get', '-lg --json --long --global text'),
    // `fund x` and `help x` start the program that the project's .npmrc names.
    ...each('help fund licenses ping doctor whoami', '--json none'),
    'pkg.get': '--json text',
  },
  pnpm: { '': '-v none' },
  bun: {},
  pip: {
    ...each(
      'list freeze',
      '-oulev --outdated --uptodate --local --user --format: --not-required --all --verbose none',
    ),
    show: '-fv --files --verbose text',
    check: 'none',
    help: 'text',
    ...each('config.list config.get cache.dir cache.info', 'text'),
  },
  gem: {
    ...each(
      'list environment info contents which query',
      '-ald --all --details --local --remote --exact text',
    ),
  },
  ...each2('apt apt-cache apt-get', {
    ...each(
      'list show search policy depends rdepends showpkg madison',
      '-a --installed --upgradable --upgradeable --all-versions --names-only --no-all-versions -n text',
    ),
  }),
  dpkg: { ...each('-l -L -s -S --list --listfiles --status --search --print-architecture', 'text') },
  rpm: { ...each('-q -qa -qi -ql -qf -qR', 'text') },
  pacman: { ...each('-Q -Qi -Ql -Qs -Qo -Qe -Qm -Ss -Si', 'text') },
  apk: { ...each('info list search policy', '-aevLdsw --installed --upgradable text') },
  brew: {
    ...each(
      'list ls info search deps leaves outdated config',
      '-1 --versions --cask --formula --json? --tree --installed text',
    ),
  },
  dnf: { ...each('list info search repolist provides', '--installed --available text') },
  snap: { ...each('list info find', '--all text') },
  flatpak: { ...each('list info search', '--app --runtime --columns: text') },
  go: { version: '-m none', env: 'text', help: 'text', list: '-e -f: text' },
  // `info` runs the compiler that the project's configuration names.
  cargo: { ...each('version help search', '--limit: text') },
  rustup: { ...each('toolchain.list target.list component.list', '-v --installed none') },
  ...each2('docker podman nerdctl', {
    ...each(
      'ps images container.ls image.ls volume.ls network.ls context.ls system.df stats port history diff version info search container.list image.list volume.list network.list',
      '-aqnls -f: -n: --all --quiet --format: --no-trunc --filter: --last: --latest --size --no-stream --digests --verbose -v --limit: text',
    ),
    ...each(
      'inspect container.inspect image.inspect volume.inspect network.inspect',
      '-s -f: --format: --size --type: text',
    ),
    ...each('logs container.logs', '-ft -n: --follow --tail: --since: --until: --timestamps --details text'),
    ...each(
      'compose.ps compose.ls compose.version compose.images',
      '-aq --all --quiet --format: --services --short none',
    ),
    'system.info': '-f: --format: none',
    top: 'text',
    events: '-f: --since: --until: --filter: --format: none',
    help: 'text',
  }),
  kubectl: {
    ...each(
      'get describe',
      '-AwRh -n: -o: -l: -L: --all-namespaces --namespace: --output: --selector: --watch --show-labels --sort-by: --field-selector: --no-headers --ignore-not-found --label-columns: text',
    ),
    logs: '-fp -n: -c: -l: --follow --previous --namespace: --container: --tail: --since: --timestamps --all-containers --prefix --selector: text',
    top: '-An: -n: --all-namespaces --namespace: --containers --sort-by: text',
    ...each(
      'version cluster-info api-resources api-versions explain config.current-context config.get-contexts',
      '-o: --client --output: --short --recursive text',
    ),
    ...each('events', '-An: -n: --namespace: --all-namespaces text'),
  },
  helm: {
    ...each(
      'list ls status history search version',
      '-aAn: -n: -o: --all --all-namespaces --namespace: --output: --short text',
    ),
  },
  gh: {
    ...each(
      'pr.list issue.list run.list release.list repo.list workflow.list label.list pr.status issue.status',
      '-L: -s: -l: -a: -A: -S: -B: -H: -w: -b: -u: -e: --limit: --state: --label: --assignee: --author: --search: --base: --head: --json: --jq: --workflow: --branch: --status: --repo: -R: -q: text',
    ),
    ...each(
      'pr.view issue.view run.view release.view repo.view pr.diff pr.checks workflow.view',
      '-c -R: --comments --json: --jq: -q: --repo: --log --log-failed --job: --name-only --patch --color: --verbose text',
    ),
    'auth.status': 'none',
    ...each('version help status', 'text'),
  },
  aws: {
    's3.ls': '--recursive --human-readable --summarize --region: --profile: --output: text',
    'sts.get-caller-identity': '--region: --profile: --output: --query: none',
  },
  terraform: { ...each('version', '-json none') },
  tofu: { version: '-json none' },
  svn: { ...each('status st log info diff ls list', '-l: -r: -v -q --limit: --revision: --summarize read') },
  ...each2('pyenv rbenv asdf nvm fnm volta', { ...each('version versions list ls current', 'none') }),
  sally: {},
};

const packageName = '(?:@[\\w.-]+/)?[A-Za-z0-9][\\w-]*(?:\\.(?!tgz|tar)[\\w-]+)*(?:@[\\w.^~<>=*|+-]+)?';

/** Operands, parted by spaces, of those that take more than they should: a path, an address, a second command. */
export const subShapes: Readonly<Record<string, RegExp>> = {
  ...Object.fromEntries(
    ['view', 'info', 'show', 'outdated', 'why', 'explain'].map((name) => [
      `npm ${name}`,
      new RegExp(`^(?:${packageName}(?: ${packageName})*)?$`),
    ]),
  ),
  'npm config': /^(?!.*(auth|token|password|_key))[\w@:.-]*$/i,
  // A formula is a program, and a name with slashes is fetched from a stranger.
  ...Object.fromEntries(
    ['info', 'deps', 'list', 'ls', 'outdated'].map((name) => [`brew ${name}`, /^(?!.*\.rb\b)[\w@+. -]*$/]),
  ),
  'go list': /^\.[\w./-]*$/,
  'docker top': /^[\w.-]+$/,
  'podman top': /^[\w.-]+$/,
  'nerdctl top': /^[\w.-]+$/,
};

function each(names: string, notation: string): Readonly<Record<string, string>> {
  return Object.fromEntries(names.split(' ').map((name) => [name, notation]));
}

function each2<T>(names: string, value: T): Readonly<Record<string, T>> {
  return Object.fromEntries(names.split(' ').map((name) => [name, value]));
}
