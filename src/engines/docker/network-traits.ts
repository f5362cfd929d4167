/**
 * How an engine is asked for a network on which nobody of the host is. Pure.
 *
 * Before version 28 an engine gives the bridge an address of the host, by which whatever listens on the host can be reached,
 * unless that is inhibited; from 28 on `isolated` is the word for it. The older way leaves a default route to an address that
 * nobody has: without the settings of the kernel's neighbour table a connection to anywhere hangs for three seconds.
 */

export interface NetworkTraits {
  readonly driverOptions: Readonly<Record<string, string>>;
  /** Of every container on it. */
  readonly sysctls: Readonly<Record<string, string>>;
}

export function networkTraits(engineVersion: string): NetworkTraits {
  const major = Number.parseInt(engineVersion, 10);
  const gateway =
    major >= 28
      ? { 'com.docker.network.bridge.gateway_mode_ipv4': 'isolated' }
      : { 'com.docker.network.bridge.inhibit_ipv4': 'true' };
  return {
    driverOptions: { 'com.docker.network.bridge.enable_ip_masquerade': 'false', ...gateway },
    // From 27 on settings of one interface are asked for in another way; a container with these might not be made.
    sysctls: major >= 27 ? {} : quickNeighbours,
  };
}

const quickNeighbours = {
  'net.ipv4.neigh.eth0.mcast_solicit': '1',
  'net.ipv4.neigh.eth0.retrans_time_ms': '10',
};

/**
 * SECURITY: an engine before 26 passes questions about names that it does not know to the host's resolvers, also from
 * internal networks (CVE-2024-29018). With this it asks the container's own loopback, where nobody or porter answers.
 */
export const nowhereDns = {
  Dns: ['127.0.0.1'],
  DnsSearch: ['.'],
  // Where nobody answers a program should not wait for long.
  DnsOptions: ['timeout:1', 'attempts:1', 'ndots:0'],
} as const;
