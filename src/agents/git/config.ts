/** What git is told of the process environment, wherever it is started from. */

/** For git as a child: the user's own settings, and none of the variables that lead it to another repository or program. */
export function gitEnvironment(env: NodeJS.ProcessEnv = process.env): Readonly<Record<string, string>> {
  const names = ['PATH', 'HOME', 'XDG_CONFIG_HOME', 'LANG', 'TMPDIR', 'USER', 'LOGNAME'];
  const identity = ['GIT_AUTHOR_NAME', 'GIT_AUTHOR_EMAIL', 'GIT_COMMITTER_NAME', 'GIT_COMMITTER_EMAIL'];
  const kept = [...names, ...identity].flatMap((name) => {
    const value = env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(kept);
}
