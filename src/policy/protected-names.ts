/**
 * Names of files and folders that a host executes unasked: hooks, editor tasks, servers of agents, the next sandbox's own
 * settings. What was changed below one of them inside a sandbox is not brought back unless its path is named. Pure.
 */

const names: ReadonlySet<string> = new Set([
  '.git',
  '.envrc',
  '.vscode',
  '.idea',
  '.zed',
  '.devcontainer',
  '.mcp.json',
  '.claude',
  '.codex',
  '.cursor',
  '.gemini',
  'sallyport.yaml',
  'dockerfile.sallyport',
  '.husky',
  '.pre-commit-config.yaml',
  'lefthook.yml',
  '.lefthook.yml',
  'mise.toml',
  '.mise.toml',
]);

/** SECURITY: some file systems take names for the same that differ in case or in characters that nobody sees. */
const plain = (name: string): string => name.normalize('NFKC').replace(/\p{C}/gu, '').toLowerCase();

const partsOf = (path: Buffer): readonly string[] => path.toString('utf8').split('/').map(plain);

/** At any depth: the folder may be opened there as well. */
export const isProtectedPath = (path: Buffer): boolean => partsOf(path).some((name) => names.has(name));

/** Of a repository itself: no part of a patch. */
export const isGitPath = (path: Buffer): boolean => partsOf(path).includes('.git');
