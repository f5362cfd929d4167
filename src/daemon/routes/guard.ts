/**
 * The guard: commands judged, questions asked and answered, runs put on record. No route runs a command on the host: that
 * is done by the client, as the user that it is (decision 0014).
 */

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { readGuarded } from '../../guard/guarded-command.ts';
import { SallyportError } from '../../protocol/errors.ts';
import {
  type ApprovalView,
  answerBody,
  approvalView,
  approverHeader,
  askBody,
  evaluateBody,
  evaluationView,
  guardRecordBody,
} from '../../protocol/guard.ts';
import { flag } from '../query.ts';
import { json, type RouteContext, route } from '../route.ts';

const one = '/v1/approvals/:approval';

export const guardRoutes = [
  route({
    method: 'POST',
    path: '/v1/evaluate',
    summary: 'Judges a command and runs nothing: its class, where it belongs, and why',
    body: evaluateBody,
    answers: { 200: evaluationView },
    handle: async ({ services: { guard }, body }) => {
      const { text } = readGuarded(body);
      return json({ command: text, ...(await guard.judge(text, body.cwd)) });
    },
  }),
  route({
    method: 'POST',
    path: '/v1/approvals',
    summary: 'Asks whether a command may run; pending until somebody else answers',
    body: askBody,
    answers: { 201: approvalView },
    handle: async ({ services: { guard }, body }) => {
      const { text } = readGuarded(body);
      // Judged here: what a client says of its own command is not what an approver should read.
      const evaluation = await guard.judge(text, body.cwd);
      if (evaluation.route === 'deny') {
        throw new SallyportError(
          'refused_by_policy',
          `the command is blocked: ${evaluation.reasons[0]?.text}`,
          {
            advice: 'The list `guard.blocked` of your config.yaml has it; nobody can approve it.',
          },
        );
      }
      return json(
        guard.approvals.ask({
          command: text,
          ...(body.cwd === undefined ? {} : { cwd: body.cwd }),
          evaluation,
          // SECURITY: clients that name none are not one session.
          session: body.session ?? `none ${randomUUID()}`,
          expiresInMs: body.expires_in_ms,
        }),
        201,
      );
    },
  }),
  route({
    method: 'GET',
    path: '/v1/approvals',
    summary: 'The questions, oldest first; those that wait, or all that are remembered',
    query: { all: flag('Also those that are decided.', false) },
    answers: { 200: z.strictObject({ approvals: z.array(approvalView) }) },
    handle: ({ services: { guard }, query }) =>
      json({ approvals: guard.approvals.list().filter(({ state }) => query.all || state === 'pending') }),
  }),
  route({
    method: 'GET',
    path: one,
    summary: 'One question as it is now',
    answers: { 200: approvalView },
    handle: ({ services: { guard }, params }) => json(guard.approvals.get(params.approval)),
  }),
  route({
    method: 'GET',
    path: `${one}/decision`,
    summary:
      'Waits until a question is decided; for who asked, because it is withdrawn when this client goes',
    query: { keep: flag('It stays when this client goes.', false) },
    answers: { 200: approvalView },
    handle: async ({ services: { guard }, params, query, signal }) =>
      json(await guard.approvals.decision(params.approval, signal, { keep: query.keep })),
  }),
  route({
    method: 'DELETE',
    path: one,
    summary: 'Withdraws a question',
    answers: { 204: undefined },
    handle: ({ services: { guard }, params }) => {
      guard.approvals.withdraw(params.approval);
      return { type: 'empty' };
    },
  }),
  route({
    method: 'POST',
    path: `${one}/answer`,
    summary: "Answers a question; needs the approver's token in the header sallyport-approver",
    body: answerBody,
    answers: { 200: approvalView },
    handle: (context) => json(answered(context)),
  }),
  route({
    method: 'POST',
    path: '/v1/guard/records',
    summary: 'Puts a guarded command on record that its client ran on the host, or that did not run',
    body: guardRecordBody,
    answers: { 204: undefined },
    handle: ({ services: { guard }, body }) => {
      guard.record({ type: 'guard', ...body });
      return { type: 'empty' };
    },
  }),
];

/** SECURITY: whoever may ask may not answer. The token of the API is not enough. */
function answered({
  services: { guard },
  params,
  headers,
  body,
}: RouteContext<'approval', unknown, z.output<typeof answerBody>>): ApprovalView {
  const token = headers[approverHeader];
  if (typeof token !== 'string' || !guard.isApprover(token)) {
    throw new SallyportError(
      'approval_refused',
      `the answer to ${params.approval.slice(0, 40)} has no approver`,
      {
        details: { approval: params.approval.slice(0, 40) },
      },
    );
  }
  return guard.approvals.answer(params.approval, body);
}
