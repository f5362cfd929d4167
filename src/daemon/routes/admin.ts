/** The daemon's own affairs: explain, prune, shutdown. */

import { z } from 'zod';
import { createBody, shutdownBody } from '../../protocol/requests.ts';
import { json, route } from '../route.ts';

export const adminRoutes = [
  route({
    method: 'POST',
    path: '/v1/explain',
    summary: 'What a create with this body would ask of the engine; makes nothing',
    body: createBody,
    answers: {
      200: z.strictObject({
        box: z.record(z.string(), z.unknown()),
        request: z.record(z.string(), z.unknown()),
        docker_run: z.string(),
      }),
    },
    handle: async ({ services, body }) => {
      const box = await services.sandboxes.explain(body);
      return json({ box, ...services.describeBox(box) });
    },
  }),
  route({
    method: 'POST',
    path: '/v1/prune',
    summary: 'Removes sandboxes whose workspace is gone',
    body: z.strictObject({ dry_run: z.boolean().default(false) }),
    answers: {
      200: z.strictObject({
        sandboxes: z.array(
          z.strictObject({ id: z.string(), name: z.string(), why: z.string(), removed: z.boolean() }),
        ),
      }),
    },
    handle: async ({ services, body }) =>
      json({ sandboxes: await services.sandboxes.prune({ dryRun: body.dry_run }) }),
  }),
  route({
    method: 'POST',
    path: '/v1/shutdown',
    summary: 'Stops the daemon, and the sandboxes unless they are kept; answers when they are stopped',
    body: shutdownBody,
    answers: { 204: undefined },
    always: true,
    handle: async ({ services, body }) => {
      await services.shutdown(body.keep);
      return { type: 'empty' };
    },
  }),
];
