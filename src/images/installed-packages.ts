/**
 * The Debian packages that Sallyport itself installed on this machine: those that were missing before. They are of the machine and
 * not of a user, as only root installs. `sally uninstall` names them, and removes none of them.
 */

import { mkdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { startProgram } from './child-program.ts';

const recordFile = '/var/lib/sallyport/installed-packages';

export async function missingPackages(packages: readonly string[]): Promise<readonly string[]> {
  const installed = await installedOf(packages);
  return packages.filter((name) => !installed.has(name));
}

/** A failure is not one of the installation: the packages are there. */
export async function recordInstalled(packages: readonly string[], file = recordFile): Promise<void> {
  const names = [...new Set([...(await readNames(file)), ...packages])];
  await mkdir(dirname(file), { recursive: true }).catch(() => {});
  await writeFile(file, names.map((name) => `${name}\n`).join('')).catch(() => {});
}

/** Those that are still installed. */
export async function installedByUs(file = recordFile): Promise<readonly string[]> {
  const names = await readNames(file);
  const installed = await installedOf(names);
  return names.filter((name) => installed.has(name));
}

/** With the folder, where nothing else is in it. */
export async function forgetInstalled(file = recordFile): Promise<void> {
  await rm(file, { force: true });
  await rmdir(dirname(file)).catch(() => {});
}

async function readNames(file: string): Promise<readonly string[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.split('\n').filter((name) => /^[a-z0-9][a-z0-9.+-]+$/.test(name));
}

async function installedOf(packages: readonly string[]): Promise<ReadonlySet<string>> {
  const installed = new Set<string>();
  if (packages.length === 0) return installed;
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query has placeholders of its own
  const program = startProgram('dpkg-query', ['-W', '-f=${Package} ${Status}\\n', '--', ...packages], {
    onLine: (line) => {
      const name = /^(\S+) install ok installed$/.exec(line)?.[1];
      if (name !== undefined) installed.add(name);
    },
    stop: { signal: 'SIGTERM', to: 'group' },
  });
  // It ends with 1 where one of them is unknown.
  await program.ended;
  return installed;
}
