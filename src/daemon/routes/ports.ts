/** The ports of a sandbox that this machine can reach. */

import { z } from 'zod';
import { SallyportError } from '../../protocol/errors.ts';
import { publishBody } from '../../protocol/requests.ts';
import { portView } from '../../protocol/views.ts';
import { json, type Route, route } from '../route.ts';

const base = '/v1/sandboxes/:sandbox/ports';

export const portRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: base,
    summary: 'The ports that are published',
    answers: { 200: z.strictObject({ ports: z.array(portView) }) },
    handle: ({ sandbox }) => json({ ports: sandbox().view().ports }),
  }),
  route({
    method: 'POST',
    path: base,
    summary: 'Publishes a port: from now on, also after a restart, until it is taken back',
    body: publishBody,
    answers: { 201: portView },
    handle: async ({ sandbox, body }) => json(await sandbox().publish(body.port), 201),
  }),
  route({
    method: 'DELETE',
    path: `${base}/:host`,
    summary: 'Takes a published port back, by its number on this machine; whoever is connected is cut off',
    answers: { 204: undefined },
    handle: async ({ sandbox, params }) => {
      const host = Number(params.host);
      if (!Number.isInteger(host)) {
        throw new SallyportError('request_invalid', `${JSON.stringify(params.host)} is no port`, {
          details: { field: 'host' },
        });
      }
      await sandbox().unpublish(host);
      return { type: 'empty' };
    },
  }),
];
