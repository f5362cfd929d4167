/** The browser of a sandbox. */

import { browserBody } from '../../protocol/requests.ts';
import { browserView } from '../../protocol/views.ts';
import { json, type Route, route } from '../route.ts';

const path = '/v1/sandboxes/:sandbox/browser';

export const browserRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path,
    summary: 'Starts Chromium inside, or finds the one that runs; answers when its DevTools listen',
    body: browserBody,
    answers: { 200: browserView },
    handle: async ({ services, sandbox, body, signal }) =>
      json(await services.browsers.start(sandbox(), body, signal)),
  }),
  route({
    method: 'DELETE',
    path,
    summary: 'Ends the browser and closes its port',
    answers: { 204: undefined },
    handle: async ({ services, sandbox }) => {
      await services.browsers.stop(sandbox());
      return { type: 'empty' };
    },
  }),
];
