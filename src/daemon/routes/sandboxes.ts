/** Sandboxes: make, find, start, stop, remove. What is accepted goes on when the client goes away (A13). */

import { z } from 'zod';
import { SallyportError } from '../../protocol/errors.ts';
import { createBody, startBody, stopBody } from '../../protocol/requests.ts';
import {
  provisionSourceView,
  sandboxView,
  statsView,
  stoppedView,
  verifyView,
  workspaceScanView,
} from '../../protocol/views.ts';
import { flag, texts } from '../query.ts';
import { json, type Route, route } from '../route.ts';
import type { SandboxSurface } from '../surface.ts';

const one = '/v1/sandboxes/:sandbox';

export const sandboxRoutes = [
  route({
    method: 'GET',
    path: '/v1/sandboxes',
    summary: 'All sandboxes, and the sequence number of the last event that this list knows of',
    query: { label: texts('Only those with this label, as key=value. May be repeated: all must fit.') },
    answers: { 200: z.strictObject({ sandboxes: z.array(sandboxView), sequence: z.number().int() }) },
    handle: ({ services: { sandboxes }, query }) => {
      const wanted = query.label.map(readLabel);
      const views = sandboxes.list().map((sandbox) => sandbox.view());
      return json({
        sandboxes: views.filter(({ labels }) => wanted.every(([key, value]) => labels[key] === value)),
        sequence: sandboxes.events.sequence,
      });
    },
  }),
  route({
    method: 'POST',
    path: '/v1/sandboxes',
    summary: 'Makes a sandbox',
    query: { wait: flag('Answer when it is ready; else as soon as it is accepted.', true) },
    body: createBody,
    answers: { 201: sandboxView, 202: sandboxView },
    handle: async ({ services, query, body, whenOver, signal }) => {
      const sandbox = await services.sandboxes.create(body, signal);
      whenOver(sandbox.hold());
      if (!query.wait) {
        services.creates.add(sandbox);
        return json(sandbox.view(), 202);
      }
      await sandbox.ready();
      return json(sandbox.view(), 201);
    },
  }),
  route({
    method: 'GET',
    path: one,
    summary: 'One sandbox, by its name, its id or the start of its id',
    answers: { 200: sandboxView },
    handle: ({ sandbox }) => json(sandbox().view()),
  }),
  route({
    method: 'DELETE',
    path: one,
    summary: 'Removes a sandbox and everything in it',
    query: {
      force: flag('Also if changes of a copied workspace are lost.', false),
      wait: flag('Answer when it is gone; else as soon as it is accepted.', true),
      scan: flag(
        'Stop it first and scan what it planted. The answer to a caller who waits is the scan, if there is one.',
        false,
      ),
    },
    answers: { 200: workspaceScanView, 204: undefined, 202: sandboxView },
    handle: async ({ sandbox, query, signal }) => {
      const box = sandbox();
      // Who waits may give up while it is looked at for changes; then nothing is removed.
      const { force, scan } = query;
      const removed = box.remove({ force, scan, ...(query.wait ? { signal } : {}) });
      if (query.wait) {
        const planted = await removed;
        return planted === undefined ? { type: 'empty' } : json(planted);
      }
      removed.catch(() => {});
      return json(box.view(), 202);
    },
  }),
  route({
    method: 'GET',
    path: `${one}/ready`,
    summary: 'Answers when a create that was accepted is done, or with the reason why it failed',
    answers: { 200: sandboxView },
    handle: async ({ services, params, sandbox }) => {
      const made = services.creates.find(params.sandbox);
      if (made !== undefined) {
        const then = await made;
        const now = services.sandboxes.list().find(({ id }) => id === then.id);
        return json(now?.view() ?? then);
      }
      const box = sandbox();
      await box.ready();
      return json(box.view());
    },
  }),
  route({
    method: 'POST',
    path: `${one}/start`,
    summary: 'Starts a sandbox that is stopped; as a whole, or once to be cleaned up',
    body: startBody,
    answers: { 200: sandboxView },
    handle: async ({ sandbox, body }) => {
      const box = sandbox();
      const { clean_up: cleanUp, disk: diskBytes } = body;
      await box.start({ cleanUp, ...(diskBytes === undefined ? {} : { diskBytes }) });
      return json(box.view());
    },
  }),
  change('pause', 'Freezes all processes of a sandbox', (box) => box.pause()),
  change('resume', 'Lets a paused sandbox go on', (box) => box.resume()),
  change('ensure', 'Sees to it that a sandbox runs and answers', (box) => box.ensureRunning()),
  route({
    method: 'POST',
    path: `${one}/stop`,
    summary:
      'Stops a sandbox; its files stay. The answer has what it planted, by a scan of at most 2 seconds',
    body: stopBody,
    answers: { 200: stoppedView },
    handle: async ({ sandbox, body }) => {
      const box = sandbox();
      const scan = await box.stop(body.grace_ms);
      return json({ ...box.view(), ...(scan === undefined ? {} : { scan }) });
    },
  }),
  route({
    method: 'GET',
    path: `${one}/stats`,
    summary: 'What a sandbox uses now',
    answers: { 200: statsView },
    handle: async ({ sandbox }) => json(await sandbox().stats()),
  }),
  route({
    method: 'GET',
    path: `${one}/provision-source`,
    summary: 'The image a sandbox is made of, if nothing of its user can be in it; else it is refused',
    answers: { 200: provisionSourceView },
    handle: ({ sandbox }) => json(sandbox().provisionSource()),
  }),
  route({
    method: 'GET',
    path: `${one}/verify`,
    summary: 'What is enforced, read back from inside and compared with what was asked for',
    answers: { 200: verifyView },
    handle: async ({ sandbox }) => json(await sandbox().verify()),
  }),
  route({
    method: 'GET',
    path: `${one}/workspace-scan`,
    summary:
      'What appeared in a live workspace that programs of this machine may execute; waits for a scan for at most 2 seconds',
    answers: { 200: workspaceScanView },
    handle: async ({ sandbox }) => json((await sandbox().scan()) ?? { finished: true, planted: [] }),
  }),
];

function change(verb: string, summary: string, act: (box: SandboxSurface) => Promise<void>): Route {
  return route({
    method: 'POST',
    path: `${one}/${verb}`,
    summary,
    body: z.strictObject({}),
    answers: { 200: sandboxView },
    handle: async ({ sandbox }) => {
      const box = sandbox();
      await act(box);
      return json(box.view());
    },
  });
}

function readLabel(text: string): readonly [string, string] {
  const at = text.indexOf('=');
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  throw new SallyportError('request_invalid', `query.label ${JSON.stringify(text)} is not key=value`, {
    details: { field: 'query.label' },
  });
}
