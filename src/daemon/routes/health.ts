/** What the daemon says about itself. */

import { z } from 'zod';
import { healthView } from '../../protocol/views.ts';
import { json, route } from '../route.ts';

export const healthRoutes = [
  route({
    method: 'GET',
    path: '/v1/health',
    summary: 'Whether the daemon and its engine answer, and which ones they are',
    answers: { 200: healthView },
    always: true,
    handle: async ({ services }) => json(await services.health()),
  }),
  route({
    method: 'GET',
    path: '/metrics',
    summary: 'Figures in the text format of Prometheus',
    answers: { 200: { contentType: 'text/plain; version=0.0.4', description: 'Metrics' } },
    always: true,
    handle: ({ services }) => ({
      type: 'text',
      contentType: 'text/plain; version=0.0.4; charset=utf-8',
      body: services.metricsText(),
    }),
  }),
  route({
    method: 'GET',
    path: '/openapi.json',
    summary: 'This description',
    answers: { 200: z.record(z.string(), z.unknown()) },
    always: true,
    handle: ({ services }) => json(services.openApi()),
  }),
];
