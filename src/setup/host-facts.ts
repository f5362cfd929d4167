/** What this machine has that could be an engine or become one. Gathers only; `start-ways.ts` and `install-plan.ts` judge. */

import { constants } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SetupEnvironment } from './config.ts';

export interface HostFacts {
  readonly platform: NodeJS.Platform;
  readonly isRoot: boolean;
  /** Where each of the programs that matter was found. */
  readonly programs: Readonly<Partial<Record<Program, string>>>;
  /** macOS applications. */
  readonly apps: readonly string[];
  /** systemd is really running, not only installed. */
  readonly systemd: boolean;
  readonly units: readonly string[];
  readonly userUnits: readonly string[];
  /** Linux within Windows, which has Docker Desktop. */
  readonly wslDesktop: boolean;
  /** `ID` and then `ID_LIKE` of /etc/os-release. */
  readonly distribution: readonly string[];
}

const programNames = ['dockerd', 'systemctl', 'open', 'orb', 'colima', 'podman', 'bwrap'] as const;
export type Program = (typeof programNames)[number];

const unitFolders = ['/etc/systemd/system', '/usr/lib/systemd/system', '/lib/systemd/system'];
const userUnitFolders = ['/etc/systemd/user', '/usr/lib/systemd/user', '/lib/systemd/user'];

async function exists(path: string, mode: number = constants.F_OK): Promise<boolean> {
  return await access(path, mode).then(
    () => true,
    () => false,
  );
}

async function firstWith(
  folders: readonly string[],
  name: string,
  mode?: number,
): Promise<string | undefined> {
  for (const folder of folders) {
    const path = join(folder, name);
    if (await exists(path, mode)) return path;
  }
  return undefined;
}

async function present(names: readonly string[], folders: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(names.map((name) => firstWith(folders, name)));
  return names.filter((_name, index) => found[index] !== undefined);
}

export function parseOsRelease(text: string): readonly string[] {
  const field = (name: string): string =>
    new RegExp(`^${name}=["']?([^"'\\n]*)["']?\\s*$`, 'm').exec(text)?.[1] ?? '';
  return `${field('ID')} ${field('ID_LIKE')}`.toLowerCase().split(/\s+/).filter(Boolean);
}

export async function gatherHostFacts(env: SetupEnvironment): Promise<HostFacts> {
  const programs: Partial<Record<Program, string>> = {};
  for (const name of programNames) {
    const path = await firstWith(env.searchPath, name, constants.X_OK);
    if (path !== undefined) programs[name] = path;
  }
  const apps = await present(['Docker.app', 'OrbStack.app'], ['/Applications', `${env.home}/Applications`]);
  return {
    platform: env.platform,
    isRoot: env.uid === 0,
    programs,
    apps: env.platform === 'darwin' ? apps.map((name) => name.replace(/\.app$/, '')) : [],
    systemd: await exists('/run/systemd/system'),
    units: await present(['docker.service'], unitFolders),
    userUnits: await present(
      ['docker-desktop.service', 'docker.service', 'podman.socket'],
      [`${env.home}/.config/systemd/user`, ...userUnitFolders],
    ),
    wslDesktop: await exists('/mnt/c/Program Files/Docker/Docker/Docker Desktop.exe'),
    distribution: parseOsRelease(await readFile('/etc/os-release', 'utf8').catch(() => '')),
  };
}
