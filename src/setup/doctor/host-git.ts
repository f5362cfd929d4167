/**
 * Whether git on this machine obeys git directories that lie somewhere in a work tree. A sandbox may leave one in a live workspace,
 * and a clone may bring one along; `safe.bareRepository=explicit` (git 2.38) has git ignore those without a `.git`.
 */

import type { SetupEnvironment } from '../config.ts';
import { runCommand } from '../run-command.ts';
import type { Check } from './check.ts';
import { compareVersions, parseVersion } from './version-order.ts';

const timeoutMs = 5000;

export interface HostGitFacts {
  /** Absent: git is not installed. */
  readonly version?: string;
  /** `safe.bareRepository` of the user or of the machine: git ignores it anywhere else. */
  readonly bareRepository?: string;
}

const bareRepositoryCommand = 'git config --global safe.bareRepository explicit';
const firstWithSetting = { numbers: [2, 38, 0] } as const;

export async function gatherHostGit({ childVariables }: SetupEnvironment): Promise<HostGitFacts> {
  const git = async (...args: string[]): Promise<string | undefined> => {
    const { exitCode, outputTail } = await runCommand(['git', ...args], {
      environment: childVariables,
      timeoutMs,
    });
    return exitCode === 0 ? outputTail.trim() : undefined;
  };
  const version = (await git('--version'))?.replace(/^git version /, '');
  if (version === undefined) return {};
  const setting = ['--includes', '--get', 'safe.bareRepository'];
  const found =
    (await git('config', '--global', ...setting)) ?? (await git('config', '--system', ...setting));
  return { version, ...(found === undefined ? {} : { bareRepository: found }) };
}

/** An older git takes the setting and ignores it. */
const knowsSetting = (version: string): boolean => {
  const parsed = parseVersion(version);
  return parsed !== undefined && compareVersions(parsed, firstWithSetting) >= 0;
};

export const isExplicit = ({ version, bareRepository }: HostGitFacts): boolean =>
  version === undefined || (bareRepository === 'explicit' && knowsSetting(version));

/** What ends it. */
export const bareRepositoryAdvice = ({ version = '' }: HostGitFacts): string =>
  knowsSetting(version)
    ? `Run \`${bareRepositoryCommand}\`.`
    : `Update git to 2.38 or newer, then run \`${bareRepositoryCommand}\`: git ${version} does not know the setting.`;

export function checkHostGit(facts: HostGitFacts): Check {
  const check = { id: 'host-git', title: 'git on this machine' } as const;
  if (facts.version === undefined) return { ...check, status: 'ok', value: 'not installed' };
  if (isExplicit(facts))
    return { ...check, status: 'ok', value: `${facts.version}, obeys no bare repository in a work tree` };
  return {
    ...check,
    status: 'warn',
    value: `${facts.version}, runs programs that a bare repository in any folder names`,
    advice: bareRepositoryAdvice(facts),
  };
}
