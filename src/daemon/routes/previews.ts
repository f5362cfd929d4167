/** Ports of a sandbox for the browser of whoever asks. */

import { z } from 'zod';
import { previewBody } from '../../protocol/requests.ts';
import { previewView } from '../../protocol/views.ts';
import { json, type Route, route } from '../route.ts';

const base = '/v1/sandboxes/:sandbox/previews';

export const previewRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: base,
    summary: 'A link to a port inside that works once, in one browser; nobody else gets in',
    body: previewBody,
    answers: { 201: previewView },
    handle: async ({ services, sandbox, body }) => json(await services.previews.open(sandbox(), body), 201),
  }),
  route({
    method: 'GET',
    path: base,
    summary: 'The previews that there are, without their links',
    answers: { 200: z.strictObject({ previews: z.array(previewView) }) },
    handle: async ({ services, sandbox }) => json({ previews: await services.previews.list(sandbox()) }),
  }),
  route({
    method: 'DELETE',
    path: `${base}/:preview`,
    summary: 'Ends a preview: its links, its sessions and what is connected',
    answers: { 204: undefined },
    handle: ({ services, sandbox, params }) => {
      services.previews.revoke(sandbox(), params.preview);
      return { type: 'empty' };
    },
  }),
];
