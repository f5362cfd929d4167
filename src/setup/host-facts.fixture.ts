/** For tests: a Debian machine, as root, with nothing installed. */

import type { HostFacts } from './host-facts.ts';

export const bareDebian: HostFacts = {
  platform: 'linux',
  isRoot: true,
  programs: {},
  apps: [],
  systemd: false,
  units: [],
  userUnits: [],
  wslDesktop: false,
  distribution: ['debian'],
};
