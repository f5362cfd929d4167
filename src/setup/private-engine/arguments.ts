/** The command line of the private dockerd. Everything that two engines could fight over is named explicitly. */

import { bridgeOf } from './bridge.ts';
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
    '--bridge',
    bridgeOf(paths).name,
    ...(paths.separate ? withoutFirewall : ownNetworks),
  ];
}

/** For networks that are made later; off Docker's default pool, as the bridge is. */
const ownNetworks = ['--default-address-pool', 'base=10.214.0.0/16,size=26'];

/** There is one set of firewall chains a machine, and it belongs to the default engine. */
const withoutFirewall = ['--iptables=false', '--ip6tables=false', '--ip-masq=false'];
