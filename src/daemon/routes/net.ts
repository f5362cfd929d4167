/** What a sandbox may reach: the rules as they are now, new ones, and the log of the gate's decisions. */

import { ruleOrThrow } from '../../policy/egress/policy.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { approvalView } from '../../protocol/guard.ts';
import { type NetRequest, netChangeBody, netRequestBody } from '../../protocol/requests.ts';
import { type EgressLineView, netView } from '../../protocol/views.ts';
import { flag } from '../query.ts';
import { json, route, type SseMessage } from '../route.ts';
import type { SandboxSurface } from '../surface.ts';

const net = '/v1/sandboxes/:sandbox/net';

export const netRoutes = [
  route({
    method: 'GET',
    path: net,
    summary: 'What a sandbox may reach now, and what was denied and reached since the daemon began',
    answers: { 200: netView },
    handle: ({ sandbox }) => json(sandbox().net()),
  }),
  route({
    method: 'POST',
    path: net,
    summary: 'Allows and denies more, at once: connections that nothing allows any more are closed',
    body: netChangeBody,
    answers: { 200: netView },
    handle: async ({ sandbox, body }) => json(await sandbox().changeNet(body)),
  }),
  route({
    method: 'POST',
    path: `${net}/requests`,
    summary:
      'Asks a person to allow more; once an approver says yes it holds, and until then nothing changes',
    body: netRequestBody,
    answers: { 201: approvalView },
    handle: ({ services: { guard }, sandbox, body }) =>
      json(guard.approvals.ask(questionOf(sandbox(), body)), 201),
  }),
  route({
    method: 'GET',
    path: `${net}/log`,
    summary: 'Every decision of the gate about a sandbox, as server-sent events',
    query: { follow: flag('Go on with what comes.', false) },
    answers: { 200: { contentType: 'text/event-stream', description: 'Each data line is a decision' } },
    handle: ({ sandbox, query, signal }) => ({
      type: 'events',
      messages: messages(sandbox().netLog({ follow: query.follow, signal })),
    }),
  }),
];

/** What a person reads is made here of parsed rules: words of who asks stand behind the rules, and never look like one. */
function questionOf(sandbox: SandboxSurface, { allow, reason, expires_in_ms: expiresInMs }: NetRequest) {
  const denied = new Set(sandbox.net().deny);
  const rules = allow.map((rule, index) => {
    const { text } = ruleOrThrow(rule, 'allow', `allow.${index}`);
    if (!denied.has(text)) return text;
    throw new SallyportError('refused_by_policy', `${text} is denied by the user`, {
      details: { rule: text },
      advice: 'Do without it: only the user can take back a deny, with `sally net allow`.',
    });
  });
  const command = `sally net allow ${sandbox.name} ${rules.join(' ')}`;
  const said = reason === '' ? 'no reason was given' : `it says: ${JSON.stringify(reason)}`;
  const text = `who works in ${sandbox.name} asks to reach ${rules.join(', ')}; ${said}`;
  return {
    command,
    evaluation: {
      route: 'host' as const,
      class: 'network' as const,
      confirm: true,
      reasons: [{ rule: 'sends_out' as const, span: { start: 0, end: command.length }, text }],
    },
    session: `net ${sandbox.id}`,
    expiresInMs,
    // It holds from here on; who asked need not wait until old connections are judged again.
    apply: () => void sandbox.changeNet({ allow, deny: [] }).catch(() => {}),
  };
}

async function* messages(lines: AsyncIterable<EgressLineView>): AsyncGenerator<SseMessage> {
  for await (const line of lines) yield { data: line };
}
