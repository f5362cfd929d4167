/** Who commits: name and email as git on this machine has them, for an agent that commits inside. */

import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

/** Variables for the agent; empty where git is missing or knows nobody. */
export async function gitIdentity(
  folder: string,
  environment: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, string>>> {
  const { GIT_AUTHOR_NAME: nameHere, GIT_AUTHOR_EMAIL: emailHere } = environment;
  const known = nameHere !== undefined && emailHere !== undefined;
  const settings = known ? new Map<string, string>() : await userSettings(folder, environment);
  const name = nameHere ?? settings.get('user.name');
  const email = emailHere ?? settings.get('user.email');
  return {
    ...(name === undefined ? {} : { GIT_AUTHOR_NAME: name, GIT_COMMITTER_NAME: name }),
    ...(email === undefined ? {} : { GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_EMAIL: email }),
  };
}

/** `config` reads files and runs nothing of the repository. The last of each counts, as for git itself. */
async function userSettings(
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<ReadonlyMap<string, string>> {
  const child = spawn('git', ['-C', folder, 'config', '-z', '--get-regexp', '^user\\.(name|email)$'], {
    env: { ...env, LC_ALL: 'C.UTF-8' },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  // Where git is missing it says nothing, which is the answer.
  child.once('error', () => {});
  const entries = (await text(child.stdout)).split('\0').map((entry): [string, string] => {
    const end = entry.indexOf('\n');
    return [entry.slice(0, Math.max(0, end)), entry.slice(end + 1).trim()];
  });
  return new Map(entries.filter(([, value]) => value !== ''));
}
