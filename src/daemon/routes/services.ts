/** The services of a sandbox. What they are is in its view; here is what they print. */

import { flag, whole } from '../query.ts';
import { type Route, route } from '../route.ts';

export const serviceRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/v1/sandboxes/:sandbox/services/:service/logs',
    summary: 'What a service has printed, as far as the engine keeps it (20 MB)',
    query: {
      tail: whole('Only so many of the last lines.'),
      follow: flag('Go on with what comes.', false),
    },
    answers: { 200: { contentType: 'application/octet-stream', description: 'Both streams, as they came' } },
    handle: async ({ sandbox, params, query, signal }) => ({
      type: 'bytes',
      contentType: 'application/octet-stream',
      chunks: await sandbox().serviceLogs(params.service, {
        follow: query.follow,
        signal,
        ...(query.tail === undefined ? {} : { tail: query.tail }),
      }),
      eager: !query.follow,
    }),
  }),
];
