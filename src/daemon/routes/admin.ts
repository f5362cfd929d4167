/** The daemon's own affairs: explain, prune, shutdown. */

import { z } from 'zod';
import type { PrunedImageView } from '../../protocol/images.ts';
import { createBody, pruneBody, shutdownBody } from '../../protocol/requests.ts';
import { type PruneView, pruneView } from '../../protocol/views.ts';
import type { PrunedThing } from '../../sandboxes/prune.ts';
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
        docker_run: z.string().optional(),
        command_line: z.string().optional(),
        /** Remarks for the caller, such as how far the runtime is known. */
        notes: z.array(z.string()),
      }),
    },
    handle: async ({ services, body, signal }) => {
      const { box, home, notes } = await services.sandboxes.explain(body, signal);
      return json({ box, ...(await services.describeBox(box, home)), notes });
    },
  }),
  route({
    method: 'POST',
    path: '/v1/prune',
    summary:
      'Removes what is no longer needed: sandboxes, services, networks, volumes and images of ours; with `agent`, only sandboxes of that agent',
    body: pruneBody,
    answers: { 200: pruneView },
    handle: async ({ services: { sandboxes, images }, body }) => {
      const dryRun = body.dry_run;
      const olderThan = body.older_than_ms === undefined ? {} : { olderThanMs: body.older_than_ms };
      const agent = body.agent === undefined ? {} : { agent: body.agent };
      const things = await sandboxes.prune({ dryRun, ...olderThan, ...agent });
      // After the sandboxes, which may be the last that needed an image. An image is not of one agent alone.
      const gone = body.agent === undefined ? await images.prune(dryRun) : [];
      return json(pruned(things, gone, dryRun));
    },
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

function pruned(
  things: readonly PrunedThing[],
  images: readonly PrunedImageView[],
  dryRun: boolean,
): PruneView {
  const all: PruneView['things'] = [
    ...things.map(({ sizeBytes, ...rest }) => ({ ...rest, size_bytes: sizeBytes })),
    ...images.map(({ reference, size_bytes, why, removed }) => ({
      kind: 'image' as const,
      id: reference,
      name: reference,
      why,
      size_bytes,
      ...(removed || dryRun
        ? { outcome: dryRun ? ('would_be_removed' as const) : ('removed' as const) }
        : { outcome: 'kept' as const, note: 'something uses it' }),
    })),
  ];
  const goes = all.filter(({ outcome }) => outcome !== 'kept');
  return { things: all, freed_bytes: goes.reduce((sum, { size_bytes }) => sum + size_bytes, 0) };
}
