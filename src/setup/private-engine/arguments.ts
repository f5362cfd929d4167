/** The command line of the private dockerd. Everything that two engines could fight over is named explicitly. */

import type { PrivateEnginePaths } from './paths.ts';

export function dockerdArguments(paths: PrivateEnginePaths): readonly string[] {
  return [
    '--host',
    `unix://${paths.socket}`,
    // The machine's own /etc/docker/daemon.json is for another engine, and a flag that it also sets is fatal.
    '--config-file',
    paths.configFile,
    '--data-root',
    paths.dataRoot,
    '--exec-root',
    paths.execRoot,
    '--pidfile',
    paths.pidFile,
    ...(paths.separate ? withoutNetworks : ownNetworks),
  ];
}

/** Off Docker's default pool (172.17.0.0/16 and on), so that it lives beside another engine and most VPNs. */
const ownNetworks = ['--bip', '10.213.0.1/24', '--default-address-pool', 'base=10.214.0.0/16,size=26'];

/** There is one docker0 and one set of firewall chains a machine, and they belong to the default engine. */
const withoutNetworks = ['--bridge=none', '--iptables=false', '--ip6tables=false'];
