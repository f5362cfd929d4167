/** The container of a service in the Engine API's words. Pure. */

import type { ServiceRequest } from '../../protocol/box.ts';
import { cpuQuota } from './cpu-quota.ts';
import { type NetworkTraits, nowhereDns } from './network-traits.ts';
import type { ContainerBody } from './types.ts';

export function serviceBody(
  service: ServiceRequest,
  { sysctls }: Pick<NetworkTraits, 'sysctls'>,
): ContainerBody {
  const { limits, network } = service;
  return {
    Image: service.image,
    ...(service.command === undefined ? {} : { Cmd: service.command }),
    Env: Object.entries(service.env).map(([name, value]) => `${name}=${value}`),
    Hostname: network.alias,
    Labels: service.labels,
    Tty: false,
    // Asked by us, as often as is of use, and not for as long as it runs.
    Healthcheck: { Test: ['NONE'] },
    NetworkingConfig: { EndpointsConfig: { [network.name]: { Aliases: [network.alias] } } },
    HostConfig: {
      NetworkMode: network.name,
      ...nowhereDns,
      Sysctls: sysctls,
      CapDrop: ['ALL'],
      CapAdd: service.capabilities,
      SecurityOpt: ['no-new-privileges'],
      Privileged: false,
      Memory: limits.memoryBytes,
      MemorySwap: limits.memoryBytes,
      ...cpuQuota(limits.cpus),
      PidsLimit: limits.pids,
      ShmSize: limits.shmBytes,
      IpcMode: 'private',
      // Readable by `logs`, and bounded: a service may print for months.
      LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '2' } },
      Ulimits: [
        { Name: 'core', Soft: 0, Hard: 0 },
        ...(limits.nofile === undefined
          ? []
          : [{ Name: 'nofile', Soft: limits.nofile, Hard: limits.nofile }]),
      ],
      AutoRemove: false,
    },
  };
}
