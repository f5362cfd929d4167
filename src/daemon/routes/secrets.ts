/** Secrets of the host: set, listed, removed, checked. Values go in; none comes out. */

import { z } from 'zod';
import { serviceBindings, serviceOfToken } from '../../policy/known-services.ts';
import { SallyportError } from '../../protocol/errors.ts';
import type { KnownService } from '../../protocol/known-service-names.ts';
import {
  type KeptSecret,
  type SecretBinding,
  type SecretBody,
  type SecretView,
  secretBody,
  secretCheckView,
  secretName,
  secretView,
} from '../../protocol/secrets.ts';
import { flag } from '../query.ts';
import { json, route } from '../route.ts';

const one = '/v1/secrets/:name';

export const secretRoutes = [
  route({
    method: 'GET',
    path: '/v1/secrets',
    summary: 'All secrets by name and where each may go, without their values',
    answers: { 200: z.strictObject({ secrets: z.array(secretView) }) },
    handle: ({ services: { secrets } }) => json({ secrets: secrets.list().map(viewOf) }),
  }),
  route({
    method: 'PUT',
    path: one,
    summary: 'Sets a secret, or changes what is named of one that is there; counts from the next request on',
    body: secretBody,
    answers: { 200: secretView },
    handle: async ({ services: { secrets }, params, body }) => {
      const name = named(params.name);
      const { value, command, ttl_ms: ttlMs, budget, expires_at: expiresAt, store } = body;
      const service = serviceFor(secrets.find(name), body);
      const binding = bindingOf(name, service === undefined ? body : { ...body, service });
      if (value !== undefined && command !== undefined) {
        throw invalid(name, 'has both a value and a command', 'Give one of them.');
      }
      const change = {
        ...(service === undefined ? {} : { service }),
        ...(binding === undefined ? {} : { binding }),
        ...(value === undefined ? {} : { value }),
        ...(command === undefined ? {} : { command }),
        ...(ttlMs === undefined ? {} : { ttlMs }),
        ...(budget === undefined ? {} : { budget }),
        ...(expiresAt === undefined ? {} : { expiresAt }),
        ...(store === undefined ? {} : { store }),
      };
      return json(viewOf(await secrets.set(name, change)));
    },
  }),
  route({
    method: 'DELETE',
    path: one,
    summary: 'Removes a secret; the next request with its phantom is refused',
    answers: { 204: undefined },
    handle: async ({ services: { secrets }, params }) => {
      await secrets.remove(named(params.name));
      return { type: 'empty' };
    },
  }),
  route({
    method: 'GET',
    path: `${one}/check`,
    summary: 'Whether a secret is there and how long it is good for; runs its command, if it has one',
    query: { ask: flag('Ask the service as well, where it is known how.', false) },
    answers: { 200: secretCheckView },
    handle: async ({ services: { secrets }, params, query, signal }) =>
      json(await secrets.check(named(params.name), { ask: query.ask, signal })),
  }),
];

function named(text: string): string {
  const name = secretName.safeParse(text);
  if (name.success) return name.data;
  throw new SallyportError('secret_invalid', `${JSON.stringify(text.slice(0, 70))} is no name of a secret`, {
    advice: 'Use lower case letters, digits, dots and dashes.',
  });
}

/** As it is said, or as one that is there has it; where the new value is of another kind, that kind. */
function serviceFor(
  before: KeptSecret | undefined,
  { service, binding, value }: SecretBody,
): KnownService | undefined {
  if (service !== undefined) return serviceOfToken(service, value);
  if (binding !== undefined || before?.service === undefined) return undefined;
  const now = serviceOfToken(before.service, value);
  return now === before.service ? undefined : now;
}

/** Undefined: nothing is said about it, and one that is there keeps its own. */
function bindingOf(name: string, { service, binding }: SecretBody): SecretBinding | undefined {
  if (service !== undefined && binding !== undefined) {
    throw invalid(name, `is bound by the service ${service} and by hand`, 'Leave one of them out.');
  }
  if (service !== undefined) return serviceBindings[service];
  if (binding === undefined) return undefined;
  const { port = 443, env = [], prefix = '' } = binding;
  return { ...binding, port, env, prefix };
}

const invalid = (name: string, what: string, advice: string): SallyportError =>
  new SallyportError('secret_invalid', `the secret ${name} ${what}`, { details: { name }, advice });

function viewOf({
  name,
  service,
  binding,
  source,
  store,
  budget,
  updatedAt,
  expiresAt,
  note,
}: KeptSecret): SecretView {
  const { hosts, port, path, headers, env } = binding;
  return {
    name,
    ...(service === undefined ? {} : { service }),
    hosts,
    port,
    ...(path === undefined ? {} : { path }),
    headers,
    env,
    source,
    ...(store === undefined ? {} : { store }),
    ...(budget === undefined ? {} : { budget }),
    updated_at: updatedAt,
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
    ...(note === undefined ? {} : { note }),
  };
}
