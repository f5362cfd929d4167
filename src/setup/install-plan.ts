/** What would be installed where no engine is, or why nothing can be: one answer per platform, decided without touching it. */

import { SallyportError } from '../protocol/errors.ts';
import type { HostFacts } from './host-facts.ts';

export interface InstallPlan {
  readonly packages: readonly string[];
  /** As a person would type them. */
  readonly commands: readonly string[];
}

/** dockerd does not start without iptables, which docker.io only recommends; iproute2 makes the private engine's bridge. */
const packages = ['docker.io', 'iptables', 'iproute2'] as const;
const install = `apt-get install -y --no-install-recommends ${packages.join(' ')}`;

/** Throws `setup_impossible`, with what to do on this platform, where Sallyport installs nothing. */
export function installPlan(facts: HostFacts): InstallPlan {
  if (facts.platform === 'linux' && isDebianLike(facts.distribution)) {
    if (facts.isRoot) return { packages, commands: ['apt-get update', install] };
    throw impossible(
      'no container engine is installed, and only root can install one',
      `Run \`sudo apt-get update && sudo ${install}\`, then \`sudo sally setup\`.`,
    );
  }
  throw impossible(`no container engine is installed on this ${machineName(facts)}`, adviceFor(facts));
}

function isDebianLike(distribution: readonly string[]): boolean {
  return distribution.includes('debian') || distribution.includes('ubuntu');
}

function impossible(message: string, advice: string): SallyportError {
  return new SallyportError('setup_impossible', message, { advice });
}

function machineName({ platform, distribution }: HostFacts): string {
  if (platform === 'darwin') return 'Mac';
  if (platform === 'win32') return 'Windows machine';
  return platform === 'linux' ? `${distribution[0] ?? 'Linux'} machine` : `${platform} machine`;
}

function adviceFor({ platform, distribution }: HostFacts): string {
  const has = (...ids: readonly string[]): boolean => ids.some((id) => distribution.includes(id));
  switch (platform) {
    case 'darwin':
      return 'Install Docker Desktop, OrbStack or colima (`brew install colima docker`), then run `sally setup`.';
    case 'win32':
      return 'Sallyport needs Linux: run `wsl --install`, then install and run Sallyport inside WSL 2.';
    case 'linux':
      if (has('fedora', 'rhel', 'centos')) {
        return 'Run `sudo dnf install -y moby-engine` (or docker-ce), `sudo systemctl start docker`, then `sally setup`.';
      }
      if (has('arch')) {
        return 'Run `sudo pacman -S docker`, `sudo systemctl start docker`, then `sally setup`.';
      }
      if (has('suse', 'opensuse')) {
        return 'Run `sudo zypper install docker`, `sudo systemctl start docker`, then `sally setup`.';
      }
      if (has('alpine')) return 'Run `apk add docker`, `rc-service docker start`, then `sally setup`.';
      return 'Install Docker Engine 20.10 or newer from your distribution, start it, then run `sally setup`.';
    default:
      return 'Set DOCKER_HOST to a Linux machine with Docker Engine (ssh://user@host), then run `sally setup`.';
  }
}
