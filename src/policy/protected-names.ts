/**
 * Names of files and folders that a host executes unasked: hooks, editor tasks, servers of agents, the next sandbox's own
 * settings. What was changed below one of them inside a sandbox is not brought back unless its path is named. Pure.
 */

/** At the root of a project, each with what executes because of it. */
export const projectNames = [
  // direnv, at every change into the folder.
  '.envrc',
  // Editors: tasks at the opening of a folder, interpreters, language servers.
  '.vscode',
  '.idea',
  '.zed',
  '.devcontainer',
  // Agents on the host: servers that they start, hooks that they run.
  '.mcp.json',
  '.claude',
  '.codex',
  '.cursor',
  '.gemini',
  // What the next sandbox is made of.
  'sallyport.yaml',
  'Dockerfile.sallyport',
] as const;

/** Executed only where their tool was installed or told so before: by hooks, or by trust in the path. */
export const projectNamesIfThere = [
  '.husky',
  '.pre-commit-config.yaml',
  'lefthook.yml',
  '.lefthook.yml',
  'mise.toml',
  '.mise.toml',
] as const;

const names: ReadonlySet<string> = new Set(
  ['.git', ...projectNames, ...projectNamesIfThere].map((name) => name.toLowerCase()),
);

/** SECURITY: some file systems take names for the same that differ in case or in characters that nobody sees. */
const plain = (name: string): string => name.normalize('NFKC').replace(/\p{C}/gu, '').toLowerCase();

const partsOf = (path: Buffer): readonly string[] => path.toString('utf8').split('/').map(plain);

/** At any depth: the folder may be opened there as well. */
export const isProtectedPath = (path: Buffer): boolean => partsOf(path).some((name) => names.has(name));

/** Of a repository itself: no part of a patch. */
export const isGitPath = (path: Buffer): boolean => partsOf(path).includes('.git');
