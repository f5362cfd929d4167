/**
 * The environment of a guarded command on the host: a few plain variables, and none that makes a program load or start
 * something else. Pure.
 */

import { isAbsolute, relative } from 'node:path';

const kept = new Set(['HOME', 'USER', 'LOGNAME', 'LANG', 'LANGUAGE', 'TZ', 'TMPDIR', 'TERM', 'NO_COLOR']);
const keptPattern = /^LC_[A-Z]+$/;
const systemPath = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/local/sbin', '/usr/sbin', '/sbin'];

export function hostEnvironment(
  given: Readonly<Record<string, string | undefined>>,
  cwd: string,
): Readonly<Record<string, string>> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined && (kept.has(name) || keptPattern.test(name))) env[name] = value;
  }
  return {
    ...env,
    PATH: safePath(given['PATH'] ?? '', cwd),
    // SECURITY: a repository's own configuration must not start programs while its state is looked at.
    GIT_CONFIG_COUNT: '3',
    GIT_CONFIG_KEY_0: 'core.fsmonitor',
    GIT_CONFIG_VALUE_0: 'false',
    GIT_CONFIG_KEY_1: 'core.hooksPath',
    GIT_CONFIG_VALUE_1: '/dev/null',
    // A folder that looks like a repository without a work tree has a configuration among ordinary files.
    GIT_CONFIG_KEY_2: 'safe.bareRepository',
    GIT_CONFIG_VALUE_2: 'explicit',
    GIT_PAGER: 'cat',
    PAGER: 'cat',
    GIT_TERMINAL_PROMPT: '0',
  };
}

/** SECURITY: a program that lies in the project is not the one that was judged by its name. */
function safePath(path: string, cwd: string): string {
  const isOutside = (folder: string): boolean => {
    const way = relative(cwd, folder);
    return way.startsWith('..') || isAbsolute(way);
  };
  const folders = path.split(':').filter((folder) => isAbsolute(folder) && isOutside(folder));
  return [...new Set(folders.length === 0 ? systemPath : folders)].join(':');
}
