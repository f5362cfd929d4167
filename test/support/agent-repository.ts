/** A repository for an agent to work on, an agent that does what its argument says, and a box of the test image that has git. */

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testEngine } from './engine.ts';
import { temporaryFolder } from './little-engine.ts';
import { portableGit } from './portable-git.ts';

const settings = [
  'user.name=Host',
  'user.email=host@example.invalid',
  'init.defaultBranch=main',
  'commit.gpgsign=false',
];

export function git(folder: string, ...args: readonly string[]): string {
  const given = settings.flatMap((one) => ['-c', one]);
  return execFileSync('git', ['-C', folder, ...given, ...args], { encoding: 'utf8', stdio: 'pipe' }).trim();
}

export function repository(): string {
  const folder = join(temporaryFolder(), 'project');
  mkdirSync(folder);
  chmodSync(folder, 0o777);
  git(folder, 'init', '--quiet');
  writeFileSync(join(folder, 'file'), 'first\n');
  git(folder, 'add', '.');
  git(folder, 'commit', '--quiet', '-m', 'first');
  return folder;
}

const identity = { GIT_AUTHOR_NAME: 'Agent', GIT_AUTHOR_EMAIL: 'agent@example.invalid' };
export const envs = {
  ...identity,
  GIT_COMMITTER_NAME: 'Agent',
  GIT_COMMITTER_EMAIL: 'agent@example.invalid',
  PATH: '/tmp/first:/opt/git:/usr/local/bin:/usr/bin:/bin',
  GIT_EXEC_PATH: '/opt/git',
  GIT_CONFIG_NOSYSTEM: '1',
};

/** Flags for `sally`. */
export function gitBox(): readonly string[] {
  const { source, target } = portableGit().mount;
  const given = Object.entries(envs).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  return ['--image', testEngine().image, '--mount', `${source}:${target}`, ...given];
}

/** With an agent that does what its argument says. */
export function homeWithAgent(): Record<string, string> {
  const home = temporaryFolder();
  const folder = join(home, 'sallyport/agents/shell');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'agent.yaml'), "command: [sh, -c]\nheadless: ['{prompt}']\n");
  // Git takes no repository of another user, and a sandbox no live workspace of root.
  writeFileSync(join(home, '.gitconfig'), '[safe]\n\tdirectory = *\n');
  return { HOME: home, XDG_CONFIG_HOME: home };
}
