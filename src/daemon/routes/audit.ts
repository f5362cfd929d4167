/** The audit log over HTTP: searched as `sally audit` does, and looked over. Nothing here writes to it. */

import { z } from 'zod';
import { type AuditLineView, type AuditVerdict, auditTypes, sinceOf } from '../../protocol/audit.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { choice, optionalText } from '../query.ts';
import { json, route, type SseMessage } from '../route.ts';

const hashShape = z.string().regex(/^[0-9a-f]{64}$/);

const verdictView: z.ZodType<AuditVerdict> = z.strictObject({
  ok: z.boolean(),
  lines: z.number().int(),
  head: z.strictObject({ n: z.number().int(), hash: z.string() }).optional(),
  problems: z.array(z.strictObject({ place: z.string().optional(), text: z.string() })),
});

export const auditRoutes = [
  route({
    method: 'GET',
    path: '/v1/audit',
    summary: 'The lines of the audit log, oldest first, as server-sent events; ends with the last one',
    query: {
      since: optionalText('A duration ago (2h) or a time (2026-11-16T09:00:00Z). Absent: all that is kept.'),
      sandbox: optionalText('Only lines of the sandbox of this name.'),
      type: choice('Only lines of this type.', ['any', ...auditTypes], 'any'),
    },
    answers: { 200: { contentType: 'text/event-stream', description: 'Each data line is an AuditLine' } },
    handle: ({ services: { guard }, query: { since, sandbox, type } }) => {
      const sinceMs = since === undefined ? undefined : sinceOf(since, Date.now());
      if (since !== undefined && sinceMs === undefined) {
        throw refuse('since', 'is neither a duration nor a time');
      }
      const lines = guard.audit.search({
        sinceMs,
        sandbox,
        type: type === 'any' ? undefined : type,
      });
      return { type: 'events', messages: messages(lines) };
    },
  }),
  route({
    method: 'GET',
    path: '/v1/audit/verify',
    summary: 'Whether the audit log is whole: what is missing or was changed, and the hash of its last line',
    query: { head: optionalText('A hash of an earlier look, whose line must still be there.') },
    answers: { 200: verdictView },
    handle: async ({ services: { guard }, query: { head } }) => {
      if (head !== undefined && !hashShape.safeParse(head).success)
        throw refuse('head', 'is no hash of a line');
      return json(await guard.audit.verify(head));
    },
  }),
];

const refuse = (field: string, reason: string): SallyportError =>
  new SallyportError('request_invalid', `query.${field} ${reason}`, { details: { field: `query.${field}` } });

async function* messages(lines: AsyncIterable<AuditLineView>): AsyncGenerator<SseMessage> {
  for await (const line of lines) yield { data: line };
}
