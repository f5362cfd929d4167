/** A spec as a label of its container: enough to make the record again if the store is lost, and nothing that is secret. Pure. */

import { writePort } from '../protocol/port-spec.ts';
import type { ServiceSpec } from '../protocol/service-spec.ts';
import type { Spec } from '../protocol/spec.ts';

/** As somebody would write it: durations have their unit. What an engine knows others can read, so no variables. */
export function specLabel(spec: Spec): string {
  const {
    envs: _secret,
    idle_ttl,
    max_lifetime,
    ports,
    required_services,
    optional_services,
    ...rest
  } = spec;
  return JSON.stringify({
    ...rest,
    idle_ttl: written(idle_ttl),
    max_lifetime: written(max_lifetime),
    ports: ports?.map(writePort),
    required_services: required_services?.map(writtenService),
    optional_services: optional_services?.map(writtenService),
  });
}

function writtenService({ envs: _secret, healthcheck, ...rest }: ServiceSpec): object {
  if (healthcheck === undefined) return rest;
  const { interval, timeout, start_period } = healthcheck;
  return {
    ...rest,
    healthcheck: {
      ...healthcheck,
      interval: written(interval),
      timeout: written(timeout),
      start_period: written(start_period),
    },
  };
}

const written = (value: number | string | undefined): string | undefined =>
  typeof value === 'number' ? `${value}ms` : value;
