/** What may be a service of a sandbox, and what its container gets. Pure. */

import type { ServiceLimits } from '../protocol/box.ts';
import { SallyportError } from '../protocol/errors.ts';
import { isolationLevel } from '../protocol/isolation-level.ts';
import { mostServices, type ServiceSpec } from '../protocol/service-spec.ts';
import type { Spec } from '../protocol/spec.ts';

export type WantedService = ServiceSpec & { readonly required: boolean };

/** As other containers on its network call the sandbox. */
export const primaryAlias = 'sandbox';

/** Required ones first, each kind in the order of the spec. */
export function wantedServices({
  required_services: required = [],
  optional_services: optional = [],
}: Pick<Spec, 'required_services' | 'optional_services'>): readonly WantedService[] {
  return [
    ...required.map((service) => ({ ...service, required: true })),
    ...optional.map((service) => ({ ...service, required: false })),
  ];
}

export interface ServiceFacts {
  /** `docker`, `podman`. */
  readonly engine: string;
  /** The one that the sandbox would have. */
  readonly runtime: string;
}

/** Refuses what cannot be, before anything is made. */
export function requireServices(
  spec: Pick<Spec, 'profile' | 'required_services' | 'optional_services'>,
  { engine, runtime }: ServiceFacts,
): void {
  const services = wantedServices(spec);
  if (services.length === 0) return;
  if (spec.profile === 'strict') {
    throw refused('required_services', 'the strict profile has no network card, and so no services');
  }
  if (services.length > mostServices) {
    throw refused(
      'optional_services',
      `${services.length} services are more than the ${mostServices} that there is room for`,
    );
  }
  const names = services.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    throw refused('required_services', `two services are called ${twice}, and a name is found once`);
  }
  if (engine !== 'docker') throw unsupported(`services need Docker Engine, and this engine is ${engine}`);
  if (!hasServices(runtime)) {
    throw unsupported(`services do not work with the runtime ${runtime} yet`);
  }
}

/** gVisor is set up without a network here, and would otherwise bring a network stack that nobody has judged yet. */
export const hasServices = (runtime: string): boolean => isolationLevel(runtime) !== 'gvisor';

function refused(field: string, why: string): SallyportError {
  return new SallyportError('refused_by_policy', `${field}: ${why}`, {
    details: { field },
    advice: 'Leave the services out, or ask for other ones.',
  });
}

const unsupported = (why: string): SallyportError => new SallyportError('services_unsupported', why);

const usual = { memoryBytes: 2 ** 30, cpus: 1, pids: 256 } as const;

/** `sandboxDiskBytes`: the disk limit of a service without its own. */
export function serviceLimits(
  { limits = {} }: Pick<ServiceSpec, 'limits'>,
  sandboxDiskBytes: number,
): ServiceLimits {
  const memoryBytes = limits.memory ?? usual.memoryBytes;
  return {
    memoryBytes,
    cpus: limits.cpus ?? usual.cpus,
    pids: limits.pids ?? usual.pids,
    ...(limits.nofile === undefined ? {} : { nofile: limits.nofile }),
    shmBytes: Math.floor(memoryBytes / 8),
    diskBytes: limits.disk ?? sandboxDiskBytes,
  };
}

/**
 * SECURITY: none. Only an image that begins as root to give up root itself, as most official ones do, keeps what that
 * takes: to own its data folder and to become another user. Nothing of it concerns the network or the kernel.
 */
export function serviceCapabilities(imageUser: string): readonly string[] {
  const [user] = imageUser.split(':');
  const beginsAsRoot = user === undefined || user === '' || user === 'root' || /^0+$/.test(user);
  return beginsAsRoot ? ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID'] : [];
}

/** The command of a health check; undefined: there is none. Compose's words are understood. */
export function checkCommand(test: string | readonly string[] | undefined): readonly string[] | undefined {
  if (test === undefined) return undefined;
  if (typeof test === 'string') return ['/bin/sh', '-c', test];
  const [first, ...rest] = test;
  if (first === 'NONE' || first === undefined) return undefined;
  if (first === 'CMD') return rest;
  if (first === 'CMD-SHELL') return ['/bin/sh', '-c', rest.join(' ')];
  return test;
}
