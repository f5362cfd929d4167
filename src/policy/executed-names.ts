/**
 * The one list of names that a host executes unasked, each with the program that does so and when. A live workspace, its scan,
 * `sally apply` and docs/protected-names.md are made from it. Pure data.
 */

import { dockerfileName } from '../protocol/dockerfile-name.ts';
import { programNames } from './program-paths.ts';

export interface ExecutedName {
  /** In any folder. `*` stands for any characters of a name, `/` separates a folder from a name in it. */
  readonly name: string;
  readonly by: string;
  readonly when: string;
  /**
   * At the root of a live workspace, where it is missing: `placeholder` puts an empty folder there, where its tool looks for a folder
   * or was tried with one; `scan` puts nothing there, and what appears is reported.
   */
  readonly missing: 'placeholder' | 'scan';
}

const held = (by: string, when: string, names: readonly string[]): readonly ExecutedName[] =>
  names.map((name) => ({ name, by, when, missing: 'placeholder' }));
const scanned = (by: string, when: string, names: readonly string[]): readonly ExecutedName[] =>
  names.map((name) => ({ name, by, when, missing: 'scan' }));

const opened = 'the folder is opened';
const begins = 'the agent starts in the folder';

export const executedNames: readonly ExecutedName[] = [
  ...scanned('`npx sally`', 'it is called in the folder', [...programNames]),
  ...held('direnv', 'a shell enters the folder', ['.envrc']),
  ...held('VS Code and its forks', opened, ['.vscode']),
  ...held('JetBrains IDEs', opened, ['.idea']),
  ...held('Zed', opened, ['.zed']),
  ...held('dev container tools', opened, ['.devcontainer']),
  ...held('agents that speak MCP', begins, ['.mcp.json']),
  ...held('Claude Code', begins, ['.claude']),
  ...held('Codex', begins, ['.codex']),
  ...held('Cursor', begins, ['.cursor']),
  ...held('Gemini CLI', begins, ['.gemini']),
  ...held('`sally`', 'the next sandbox of the folder is created', ['sallyport.yaml', dockerfileName]),
  ...scanned('dev container tools', opened, ['.devcontainer.json']),
  ...scanned('opencode', begins, ['opencode.json', 'opencode.jsonc', '.opencode']),
  ...scanned('Windsurf', opened, ['.windsurf']),
  ...scanned('Kiro', opened, ['.kiro']),
  ...scanned('Roo Code', opened, ['.roo']),
  ...scanned('Amazon Q', begins, ['.amazonq']),
  ...scanned('Junie', begins, ['.junie']),
  ...scanned('Qwen Code', begins, ['.qwen']),
  ...scanned('Crush', begins, ['.crush.json', 'crush.json']),
  ...scanned('Aider', begins, ['.aider.conf.yml']),
  ...scanned('Copilot', begins, ['.github/hooks']),
  ...scanned('Droid', begins, ['.factory']),
  ...scanned('Amp', begins, ['.amp']),
  ...scanned('Pi', begins, ['.pi']),
  ...scanned('Kilo Code', opened, ['.kilocode']),
  ...scanned('Continue', opened, ['.continue']),
  ...scanned('Trae', opened, ['.trae']),
  ...scanned('Visual Studio', opened, ['.vs']),
  ...scanned('Helix', 'a file of the folder is opened (language servers)', ['.helix']),
  ...scanned('Theia', opened, ['.theia']),
  ...scanned('Fleet', opened, ['.fleet']),
  ...scanned('Eclipse', 'the project is built', ['.externalToolBuilders']),
  ...scanned('VS Code and its forks', 'the file is opened', ['*.code-workspace']),
  ...scanned('Sublime Text', 'the project is opened and built', ['*.sublime-project']),
  ...scanned('Vim and Neovim with `exrc`', 'the editor starts in the folder', [
    '.exrc',
    '.vimrc',
    '.gvimrc',
    '.nvimrc',
    '.nvim.lua',
    '.lvimrc',
  ]),
  ...scanned('Emacs', 'a file of the folder is visited', ['.dir-locals.el', '.dir-locals-2.el']),
  ...scanned('YouCompleteMe', 'a C file of the folder is opened', ['.ycm_extra_conf.py']),
  ...scanned('mise', 'a shell enters the folder', [
    'mise*.toml',
    '.mise*.toml',
    '.mise',
    'mise/config*.toml',
    '.config/mise',
  ]),
  ...scanned('RVM and autoenv', 'a shell enters the folder', ['.rvmrc', '.autoenv*']),
  ...scanned('lefthook', 'an installed git hook runs', ['lefthook*', '.lefthook*', '.config/lefthook*']),
  ...scanned('husky', 'an installed git hook runs', ['.husky']),
  ...scanned('pre-commit', 'an installed git hook runs', ['.pre-commit-config.yaml']),
  ...scanned('Overcommit', 'an installed git hook runs', ['.overcommit.yml']),
  ...scanned('npm and pnpm', 'any `npm` or `pnpm` command runs (`script-shell`, `node-options`)', ['.npmrc']),
  ...scanned('pnpm', 'any install runs', ['.pnpmfile.cjs', '.pnpmfile.mjs']),
  ...scanned('Yarn', 'any `yarn` command runs (`yarnPath`, plugins)', [
    '.yarnrc.yml',
    '.yarnrc',
    '.yarn/releases',
    '.yarn/plugins',
    '.pnp.cjs',
    '.pnp.loader.mjs',
  ]),
  ...scanned('rustup', 'any `cargo` or `rustc` command runs, also by an editor (`path`)', [
    'rust-toolchain',
    'rust-toolchain.toml',
  ]),
  ...scanned('cargo', 'most `cargo` commands run, also by an editor (`build.rustc-wrapper`)', [
    '.cargo/config.toml',
    '.cargo/config',
  ]),
  ...scanned('Bun', 'any `bun` command runs (`preload`)', ['bunfig.toml']),
  ...scanned('asdf and mise', 'a program that they manage runs (`path:`)', ['.tool-versions']),
  ...scanned('GDB', 'it starts in the folder, where its safe path allows that', ['.gdbinit']),
  ...scanned('irb, Pry, pdb, IEx, GHCi, OCaml, Octave and R', 'it starts in the folder', [
    '.irbrc',
    '.pryrc',
    '.pdbrc',
    '.iex.exs',
    '.ghci',
    '.ocamlinit',
    '.octaverc',
    '.Rprofile',
    '.Renviron',
    '.RData',
  ]),
  ...scanned('LLDB', 'it starts in the folder, where its settings allow that', ['.lldbinit']),
  ...scanned('Mercurial', 'any `hg` command runs (hooks, extensions, aliases)', [
    '.hg/hgrc',
    '.hg/hgrc-not-shared',
    '.hg/sharedpath',
  ]),
  ...scanned('Jujutsu', 'any `jj` command runs (file system monitor, diff tools)', ['.jj/repo/config*.toml']),
  ...scanned('Sapling', 'any `sl` command runs (hooks, extensions, aliases)', ['.sl/config']),
  ...scanned('Fossil', 'any `fossil` command runs', ['.fossil-settings']),
];

/** What a sandbox may write to although somebody runs it: a person, or a tool that a person calls. */
export const writableNames: readonly { readonly what: string; readonly because: string }[] = [
  { what: 'sources, tests and scripts', because: 'they are what the sandbox is there to change' },
  {
    what: '`package.json`, `Makefile`, `Justfile`, `Taskfile.yml`, `build.rs`, `setup.py`, `conftest.py`',
    because: 'a build runs them, and a person starts the build',
  },
  {
    what: '`eslint.config.js`, `.eslintrc.js`, `.prettierrc.js`, `vite.config.ts`, `tsconfig.json`, `.jshintrc`',
    because:
      'a linter or bundler runs them; an editor whose extension calls it when a file is opened runs them as well',
  },
  {
    what: '`node_modules`, `.venv`, `target`, `vendor`',
    because: 'installs and builds write there; the scan reports git directories in them and nothing else',
  },
  {
    what: '`AGENTS.md`, `CLAUDE.md`, `.cursorrules`, `.clinerules`',
    because: 'they are text; an agent on the host that reads them may be talked into something',
  },
  {
    what: '`.github/workflows`, `.gitlab-ci.yml` and other pipelines',
    because: 'the forge runs them after a push, and a person pushes',
  },
  {
    what: '`.gitattributes`, `.gitmodules`, `.lfsconfig`',
    because:
      'git obeys the filters and URLs in them only where its own configuration, which is held, says so',
  },
  {
    what: '`.nvmrc`, `.node-version`, `.python-version`, `.env`',
    because:
      'they choose versions and variables; autoenv alone executes `.env` (set `AUTOENV_ENV_FILENAME=.autoenv`)',
  },
  {
    what: 'mode lines in files',
    because: 'Vim and Emacs allow only harmless options in them; turn `modeline` off to be sure',
  },
];
