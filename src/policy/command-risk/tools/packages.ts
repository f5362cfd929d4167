/** Package managers: what they install runs code of strangers, with the rights of whoever calls them. */

import type { Call, Judge } from '../call.ts';

interface Manager {
  readonly shows: RegExp;
  readonly fetches?: RegExp;
  readonly installs: RegExp;
  readonly runs?: RegExp;
  readonly sends?: RegExp;
  readonly destroys?: RegExp;
}

const javascript: Manager = {
  shows:
    /^(ls|list|ll|la|why|explain|root|prefix|bin|config|get|help|licenses|fund|query|pkg|version|whoami-local)$/,
  fetches: /^(view|info|show|outdated|audit|search|ping|whoami|doctor|docs|repo|home)$/,
  installs:
    /^(i|in|install|add|ci|update|up|upgrade|remove|rm|uninstall|un|link|ln|dedupe|prune|rebuild|global|install-test|it|import|pack|cache|set)$/,
  runs: /^(run|run-script|rum|test|t|tst|start|stop|restart|exec|x|dlx|create|init|workspace|workspaces|node|build|dev)$/,
  sends: /^(publish|login|logout|adduser|deprecate|dist-tag|owner|token|unpublish|access|team|hook|star)$/,
};

const python: Manager = {
  shows: /^(list|show|freeze|check|help|config|debug|inspect|cache|hash|env|info|tree|version)$/,
  fetches: /^(search|index)$/,
  installs:
    /^(install|uninstall|add|remove|sync|lock|update|upgrade|pip|tool|venv|python|create|activate|self|build|inject|install-all|ensurepath)$/,
  // A package that is downloaded from its source runs its own set-up.
  runs: /^(run|shell|runpip|download|wheel)$/,
  sends: /^(publish|login)$/,
};

const distribution: Manager = {
  shows:
    /^(list|show|search|policy|depends|rdepends|showpkg|madison|info|query|-l|-L|-s|-S|-q.*|-Q.*|-Ss|-Si|help|changelog|files|provides|repolist|history|leaves|deps|desc|cat|home|doctor|config|outdated)$/,
  installs:
    /^(install|reinstall|remove|purge|autoremove|update|upgrade|dist-upgrade|full-upgrade|add|del|build-dep|download|clean|autoclean|source|edit-sources|-S.*|-R.*|-U.*|-i|-r|-P|--configure|--install|--remove|--purge|in|rm|up|dup|refresh|link|unlink|tap|cleanup|pin|services|bundle|enable|disable|groupinstall|localinstall|erase|fix)$/,
};

const managers: Readonly<Record<string, Manager>> = {
  npm: javascript,
  pnpm: javascript,
  yarn: javascript,
  bun: javascript,
  pip: python,
  uv: python,
  poetry: python,
  pipenv: python,
  pipx: python,
  conda: python,
  mamba: python,
  pdm: python,
  rye: python,
  hatch: { ...python, runs: /^(run|shell|test|fmt)$/ },
  ...Object.fromEntries(
    'apt apt-get apt-cache aptitude dpkg dnf yum zypper pacman apk brew port snap flatpak rpm emerge nix-env choco winget scoop'
      .split(' ')
      .map((name) => [name, distribution]),
  ),
  gem: {
    shows: /^(list|info|environment|contents|help|which|query|specification)$/,
    fetches: /^(search|outdated|fetch)$/,
    installs: /^(install|uninstall|update|cleanup|build|unpack|pristine)$/,
    sends: /^(push|yank|owner|signin)$/,
  },
  bundle: {
    shows: /^(list|show|info|outdated|check|help)$/,
    installs: /^(install|update|add|remove|lock|clean|)$/,
    runs: /^(exec|console)$/,
  },
  composer: {
    shows: /^(show|info|list|why|depends|licenses|status|validate)$/,
    fetches: /^(search|outdated|audit)$/,
    installs: /^(install|update|require|remove|create-project|global|self-update|dump-autoload)$/,
    runs: /^(run|run-script|exec)$/,
  },
  cargo: {
    shows: /^(tree|metadata|version|help|locate-project|pkgid|read-manifest|--list)$/,
    fetches: /^(search|info|fetch)$/,
    installs: /^(install|uninstall|add|remove|update|vendor|init|new|generate-lockfile)$/,
    runs: /^(build|b|run|r|test|t|check|c|bench|clippy|doc|d|fmt|fix|nextest|rustc|rustdoc|clean|package|watch|expand|miri)$/,
    sends: /^(publish|login|yank|owner)$/,
  },
  go: {
    shows: /^(version|env|list|help|doc|vet-local)$/,
    installs: /^(get|install|mod|work)$/,
    runs: /^(build|run|test|generate|tool|vet|bug|fix|fmt|clean)$/,
  },
  dotnet: {
    shows: /^(--info|--list-sdks|--list-runtimes|list)$/,
    installs: /^(add|remove|restore|tool|new|workload)$/,
    runs: /^(build|run|test|publish|watch|exec|msbuild|clean|pack)$/,
  },
  mix: {
    shows: /^(help|hex\.info)$/,
    installs: /^(deps\.get|deps\.update|local\.hex|archive\.install)$/,
    runs: /.*/,
  },
  helm: {
    shows: /^(list|ls|status|get|show|search|version|env|template|lint|history)$/,
    installs: /^(install|upgrade|repo|pull|dependency|plugin|create)$/,
    destroys: /^(uninstall|delete|rollback)$/,
  },
};

/** `npm --prefix x install`: options first, then what is to be done. */
function judgeManager(call: Call, manager: Manager): void {
  const sub = call.args.find(({ text, known }) => known && !/^--?[a-zA-Z]/.test(text)) ?? call.args[0];
  const option = call.args[0]?.text ?? '';
  const word =
    manager === distribution && /^-/.test(option) && /^(pacman|dpkg|rpm)$/.test(call.program)
      ? option
      : (sub?.text ?? '');
  const name = `${call.program} ${word}`.trim();
  if (word === '') {
    // yarn and bundle alone install; the others show their help.
    if (/^(yarn|bundle)$/.test(call.program)) call.report('installs', `${name} installs`);
  } else if (manager.destroys?.test(word) === true) call.report('destroys', `${name} removes what runs`);
  else if (call.program === 'dpkg' && /^-[lLsS]$/.test(word)) return;
  else if (manager.installs.test(word))
    call.report('installs', `${name} changes what is installed, and runs what comes with it`);
  else if (manager.runs?.test(word) === true)
    call.report('runs_code', `${name} runs what the project or a stranger wrote`);
  else if (manager.sends?.test(word) === true) call.report('sends_out', `${name} sends to a registry`);
  else if (manager.fetches?.test(word) === true) call.report('plain_fetch', `${name} asks a registry`);
  else if (!manager.shows.test(word) && !/^(-v|-V|-h)$/.test(word)) {
    // yarn and bun run a script of that name.
    if (/^(yarn|bun|pnpm)$/.test(call.program)) call.report('runs_code', `${name} runs a script`);
    else call.report('unknown_tool', `${name} is no command that is known here`, sub?.span ?? call.span);
  }
}

const runsStrangers: Judge = (call) =>
  call.report('runs_code', `${call.program} fetches a program and runs it`);

/** SECURITY: not `rustup show`, which starts the compiler of a folder that the project names. */
const versionManager: Judge = (call) => {
  const words = call.operands.map(({ text }) => text).join(' ');
  const shows =
    call.program === 'rustup'
      ? /^(toolchain|target|component) list$/.test(words)
      : /^(pyenv|rbenv|nvm|fnm|volta|asdf)$/.test(call.program) &&
        /^(versions?|ls|list|current)$/.test(words);
  if (!shows) call.report('installs', `${call.program} changes what is installed`);
};

export const packages: Readonly<Record<string, Judge>> = {
  ...Object.fromEntries(
    Object.entries(managers).map(([name, manager]) => [name, (call: Call) => judgeManager(call, manager)]),
  ),
  ...Object.fromEntries('npx pnpx bunx uvx nix-shell nix'.split(' ').map((name) => [name, runsStrangers])),
  ...Object.fromEntries(
    'rustup nvm fnm volta pyenv rbenv asdf mise sdk corepack easy_install cpan cpanm luarocks opam ghcup stack cabal'
      .split(' ')
      .map((name) => [name, versionManager]),
  ),
};
