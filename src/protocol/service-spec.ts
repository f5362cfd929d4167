/**
 * A service of a sandbox: a container beside it, such as a database, that only this sandbox reaches. Its name is the host
 * name by which it is found.
 */

import { z } from 'zod';
import { argvSchema, envsSchema, imageReference, limitsSchema, noNul, timeSpan } from './spec-values.ts';

/** Of both kinds together; the network of a sandbox has room for so many. */
export const mostServices = 10;

const reservedServiceNames: readonly string[] = ['localhost', 'sallyport', 'sandbox'];

const serviceName = z
  .string()
  .regex(
    /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/,
    'is no host name: use a-z, 0-9 and "-", begin with a letter, end with a letter or a digit, 1 to 63 characters',
  )
  .refine((name) => !reservedServiceNames.includes(name), 'is reserved: it names the sandbox itself');

const healthcheckSchema = z.strictObject({
  /** A line of shell, or a list: program and arguments. Compose's lists are understood: CMD, CMD-SHELL, NONE. */
  test: z.union([noNul.min(1).max(10_000), argvSchema]),
  interval: timeSpan.refine((ms) => ms >= 50, 'must be at least 50ms').prefault('1s'),
  timeout: timeSpan.refine((ms) => ms >= 50, 'must be at least 50ms').prefault('5s'),
  /** So many failures in a row make it fail; those within `start_period` do not count. */
  retries: z.number().int().min(1).max(10_000).default(30),
  start_period: timeSpan.prefault('0s'),
});

const serviceSchema = z.strictObject({
  name: serviceName,
  image: imageReference,
  envs: envsSchema.optional(),
  /** Instead of the image's own command; its entrypoint stays. */
  command: argvSchema.optional(),
  /** Absent: the image's own; without one a service is ready when it runs. */
  healthcheck: healthcheckSchema.optional(),
  limits: limitsSchema.optional(),
  /** Commands that run in the sandbox when the service is healthy, at each start. */
  post_start_on_primary: z.array(argvSchema).max(20).optional(),
});
export type ServiceSpec = z.output<typeof serviceSchema>;
export type HealthcheckSpec = z.output<typeof healthcheckSchema>;

export const requiredServicesSchema = z.array(serviceSchema).max(mostServices);

export const optionalServicesSchema = z
  .array(
    serviceSchema.refine(({ post_start_on_primary: hooks }) => hooks === undefined, {
      path: ['post_start_on_primary'],
      error:
        'is only for required services: a sandbox does not wait for an optional one, so nobody knows when it would run',
    }),
  )
  .max(mostServices);
