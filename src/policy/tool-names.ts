/**
 * The one list of what programs of the host execute or obey in the folders of built-in tools, each with the program that does so and
 * when. The mounts of a sandbox, its scan and docs/protected-names.md are made from it. Pure data.
 *
 * Claude Code: version 2.1.327, by what its own command sandbox keeps from writing and by trying it. Codex: its source and
 * version 0.169. Both were tried with all placeholders of this list in place, and inside with all of it held.
 */

export interface ToolName {
  /** The id of the mount in `builtin-tools.ts`. */
  readonly mount: string;
  /** In that folder; `.` is the folder itself. `*` stands for any characters of a name. */
  readonly name: string;
  readonly by: string;
  readonly when: string;
  /**
   * `readonly`: held as it is. `own`: the sandbox has an empty folder of its own there. `copy`: the same, filled with a copy of the
   * host's when the sandbox is made.
   */
  readonly inside: 'readonly' | 'own' | 'copy';
  /** What holds the place where the host has nothing. `scan`: nothing does, and what appears is reported. */
  readonly missing: 'folder' | 'scan' | { readonly content: string };
}

type Missing = ToolName['missing'];

const folder: Missing = 'folder';
const emptyFile: Missing = { content: '' };
const emptyMap: Missing = { content: '{}\n' };

const held =
  (mount: string, by: string) =>
  (when: string, missing: Missing, names: readonly string[]): readonly ToolName[] =>
    names.map((name) => ({ mount, name, by, when, inside: 'readonly', missing }));

const own =
  (mount: string, by: string) =>
  (when: string, names: readonly string[]): readonly ToolName[] =>
    names.map((name) => ({ mount, name, by, when, inside: 'own', missing: folder }));

const copied = (mount: string, by: string, when: string, names: readonly string[]): readonly ToolName[] =>
  names.map((name) => ({ mount, name, by, when, inside: 'copy', missing: folder }));

const claude = held('claude', 'Claude Code');
const claudeOwn = own('claude', 'Claude Code');
const codex = held('codex', 'Codex');
const codexOwn = own('codex', 'Codex');
const agents = held('agents', 'Codex and other agents');

const starts = 'it starts';

export const toolNames: readonly ToolName[] = [
  ...claude(`${starts}: hooks, helpers, status line, variables`, emptyMap, [
    'settings.json',
    'settings.local.json',
  ]),
  ...claude(`${starts}, where a setting names it`, 'scan', ['settings*.json', 'statusline*']),
  ...claude('an event of its session occurs', folder, ['hooks']),
  ...claude(starts, folder, ['plugins', 'cowork_plugins', 'dev-mods']),
  ...claude('a person or the model calls them', folder, [
    'commands',
    'agents',
    'skills',
    'workflows',
    'output-styles',
  ]),
  ...claude('a schedule says so', folder, ['routines']),
  ...claude('a schedule says so', emptyMap, ['scheduled_tasks.json']),
  ...claude(`${starts}: instructions of every session`, emptyFile, ['CLAUDE.md']),
  ...claude(`${starts}: instructions of every session`, folder, ['rules']),
  ...claude('`/loop` is called without a prompt', emptyFile, ['loop.md']),
  ...claude('it shows a preview: the commands that start it', emptyMap, ['launch.json']),
  ...claude('its background service starts', emptyMap, ['daemon.json']),
  ...claude('a key is pressed', { content: '{ "bindings": [] }\n' }, ['keybindings.json']),
  ...claude(`${starts}: MCP servers`, 'scan', [
    '.config.json',
    '.claude.json',
    '.claude-*.json',
    '.mcp.json',
  ]),
  ...claude(`${starts}: settings of an organisation`, 'scan', ['remote-settings*', 'policy-limits*']),
  ...held('claude', 'a shell')('`claude` is called: the program itself', folder, ['local']),
  ...held('claude', "Claude Code's installer")('it runs what it downloaded', folder, ['downloads']),
  ...held('claude', 'Chrome and other browsers')('the extension of Claude connects', folder, ['chrome']),
  ...claudeOwn('it runs a command: the file is sourced before', ['shell-snapshots', 'session-env']),
  ...claudeOwn('it writes its settings: the file is renamed to them', ['.cc-writes']),
  ...claudeOwn('it finds an editor, another session or a job of its own there', [
    'ide',
    'sessions',
    'jobs',
    'daemon',
    'bridge-spawn',
    'remote-control',
    'seed-admin',
  ]),
  ...claudeOwn('it looks up what was consented to, shared or backed up', [
    'state',
    'shares',
    'backups',
    'mcp-discovery-cache',
    'mcp-skill-archives',
  ]),

  ...codex(`${starts}: MCP servers, \`notify\`, hooks, permissions`, emptyFile, ['config.toml']),
  ...codex(`${starts} with that profile`, 'scan', ['*.config.toml']),
  ...codex(`${starts}: settings of an organisation`, emptyFile, ['cloud-config-bundle-cache.json']),
  ...codex(`${starts}: settings of an organisation`, 'scan', ['managed_config.toml']),
  ...codex(`${starts}: variables of all that it runs`, emptyFile, ['.env']),
  ...codex(`${starts}: programs that run its commands`, emptyFile, ['environments.toml']),
  ...codex('an event of its session occurs', emptyMap, ['hooks.json']),
  ...codex('an event of its session occurs', folder, ['hooks']),
  ...codex('a turn ends, where `notify` names it', 'scan', ['notify*']),
  ...codex('it runs a command: which may run unasked', folder, ['rules']),
  ...codex('a person or the model calls them', folder, ['prompts', 'skills', 'agents']),
  ...codex(starts, folder, ['plugins', 'agent-plugins', '.tmp/plugins', '.tmp/marketplaces']),
  ...codex('it works in one: git obeys what is there', folder, ['worktrees']),
  ...codex('a schedule says so', folder, ['automations']),
  ...codex(`${starts}: instructions of every session`, emptyFile, [
    'AGENTS.md',
    'AGENTS.override.md',
    'models_cache.json',
  ]),
  ...codex('a skill is used', folder, ['vendor_imports']),
  ...held('codex', 'a shell')('`codex` is called: the program itself', folder, ['packages', 'bin']),
  ...codexOwn('it runs a command: the folder is in its PATH', ['tmp/arg0']),
  ...codexOwn('it runs a command: the file is sourced before', ['shell_snapshots']),
  ...codexOwn('it is controlled by a socket', ['app-server-control', 'app-server-daemon', 'ipc']),
  ...codexOwn('it runs a command behind its proxy: the authority that is trusted', ['proxy']),

  ...agents('a person or the model calls them', folder, ['skills', 'commands', 'agents']),
  ...agents('they start', folder, ['plugins', 'hooks', 'rules']),
  ...agents('they start: instructions of every session', emptyFile, ['AGENTS.md']),
  ...agents('they start: MCP servers', 'scan', ['mcp.json', '.mcp.json']),

  ...copied('uv-data', '`uv`, `uvx` and all that runs its Pythons and tools', 'they are called', ['.']),
  ...copied('uv-cache', '`uv` and `uvx`', 'they install or run a package: it is linked from there', ['.']),
  ...copied('npm', '`npx`', 'it is called: the package is run from there', ['_npx']),
  ...copied('npm', '`npm`', 'it installs a package without a lock file: the index is believed', ['_cacache']),
  // With `prefix=~/.npm` in the host's ~/.npmrc.
  ...held('npm', 'the shell and `npm`')(
    '`prefix` is `~/.npm`: a global package is called by its name',
    folder,
    ['bin', 'lib'],
  ),
  ...held('npm', '`npm`')('`prefix` is `~/.npm`: any command reads its settings', folder, ['etc']),
  ...copied('npm', 'install scripts of native packages', 'they unpack a binary from there', [
    '_prebuilds',
    '_libvips',
  ]),
];

/** In these folders what a tool writes all the time, so that it stays writable whatever a setting says of it. */
export const toolState: Readonly<Record<string, readonly string[]>> = {
  claude: [
    '.credentials.json',
    'projects',
    'todos',
    'tasks',
    'teams',
    'plans',
    'history.jsonl',
    'file-history',
    'agent-memory',
    'cache',
    'paste-cache',
    'image-cache',
    'uploads',
    'debug',
    'telemetry',
    'statsig',
    'stats-cache.json',
    'usage-data',
  ],
  codex: [
    'auth.json',
    '.credentials.json',
    'sessions',
    'archived_sessions',
    'history.jsonl',
    'session_index.jsonl',
    'log',
    'memories',
    'tmp',
    '.tmp',
    'cache',
    'secrets',
  ],
};

/** What is left out of a copy: it is no program, and would bring what the tool is not there for. */
export const leftOutOfCopy: Readonly<Record<string, readonly string[]>> = {
  // Passwords of package indexes, in plain text.
  'uv-data': ['credentials'],
};

/** All of the folder is the sandbox's own. */
export const isCopiedWhole = (mount: string): boolean =>
  toolNames.some((entry) => entry.mount === mount && entry.name === '.');

/** In a folder of a tool: what the sandbox has its own of. */
export const ownNames = (mount: string): readonly ToolName[] =>
  toolNames.filter((entry) => entry.mount === mount && entry.name !== '.' && entry.inside !== 'readonly');

export const heldNames = (mount: string): readonly ToolName[] =>
  toolNames.filter((entry) => entry.mount === mount && entry.inside === 'readonly');

/** Something in the folder is held, or the sandbox's own. */
export const isExecutedFrom = (mount: string): boolean => toolNames.some((entry) => entry.mount === mount);
