/** The known ways to start an engine that is installed and not running (C3), as a function of what the machine has. */

import type { HostFacts } from './host-facts.ts';

export type StartWay =
  | { readonly kind: 'command'; readonly name: string; readonly command: readonly [string, ...string[]] }
  | { readonly kind: 'private'; readonly name: string; readonly dockerd: string }
  /** Installed, but only root may start it: we say how, and do not ask for a password ourselves. */
  | { readonly kind: 'advice'; readonly name: string; readonly commandLine: string };

/** In the order in which they are tried. */
export function startWays(facts: HostFacts): readonly StartWay[] {
  switch (facts.platform) {
    case 'darwin':
      return macWays(facts);
    case 'linux':
      return linuxWays(facts);
    default:
      return [];
  }
}

function macWays({ apps, programs }: HostFacts): readonly StartWay[] {
  const ways: StartWay[] = [];
  if (apps.includes('Docker')) {
    ways.push({ kind: 'command', name: 'Docker Desktop', command: ['open', '-a', 'Docker'] });
  }
  if (programs.orb !== undefined) {
    ways.push({ kind: 'command', name: 'OrbStack', command: [programs.orb, 'start'] });
  } else if (apps.includes('OrbStack')) {
    ways.push({ kind: 'command', name: 'OrbStack', command: ['open', '-a', 'OrbStack'] });
  }
  if (programs.colima !== undefined) {
    ways.push({ kind: 'command', name: 'colima', command: [programs.colima, 'start'] });
  }
  if (programs.podman !== undefined) {
    ways.push({ kind: 'command', name: 'Podman machine', command: [programs.podman, 'machine', 'start'] });
  }
  return ways;
}

function linuxWays({
  isRoot,
  programs,
  systemd,
  units,
  userUnits,
  wslDesktop,
}: HostFacts): readonly StartWay[] {
  const ways: StartWay[] = [];
  const systemctl = systemd ? programs.systemctl : undefined;
  const ofUser = (name: string, unit: string): StartWay => ({
    kind: 'command',
    name,
    command: [systemctl ?? 'systemctl', '--user', 'start', unit],
  });
  if (systemctl !== undefined && !isRoot) {
    if (userUnits.includes('docker-desktop.service')) {
      ways.push(ofUser('Docker Desktop for Linux', 'docker-desktop'));
    }
    if (userUnits.includes('docker.service')) ways.push(ofUser('rootless Docker', 'docker'));
    if (userUnits.includes('podman.socket')) ways.push(ofUser('rootless Podman', 'podman.socket'));
  }
  if (systemctl !== undefined && units.includes('docker.service')) {
    const name = 'Docker Engine (systemd)';
    ways.push(
      isRoot
        ? { kind: 'command', name, command: [systemctl, 'start', 'docker'] }
        : { kind: 'advice', name, commandLine: 'sudo systemctl start docker' },
    );
  } else if (programs.dockerd !== undefined) {
    const name = 'a private dockerd';
    ways.push(
      isRoot
        ? { kind: 'private', name, dockerd: programs.dockerd }
        : { kind: 'advice', name: 'Docker Engine', commandLine: 'sudo sally setup' },
    );
  }
  if (programs.colima !== undefined && !isRoot) {
    ways.push({ kind: 'command', name: 'colima', command: [programs.colima, 'start'] });
  }
  if (wslDesktop) {
    const [name, path] = [
      'Docker Desktop (Windows)',
      'C:\\Program Files\\Docker\\Docker\\Docker Desktop.exe',
    ];
    ways.push({ kind: 'command', name, command: ['cmd.exe', '/c', 'start', '', path] });
  }
  return ways.sort((a, b) => Number(a.kind === 'advice') - Number(b.kind === 'advice'));
}
