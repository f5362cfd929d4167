/** Profiles of the MCP server over HTTP: made, listed, given a new token, revoked. By the daemon's own socket, never by MCP. */

import { z } from 'zod';
import { SallyportError } from '../../protocol/errors.ts';
import { mcpProfileBody, mcpProfileView, mcpTokenView, profileName } from '../../protocol/mcp.ts';
import { parseSpec } from '../../protocol/parse-spec.ts';
import type { SpecInput } from '../../protocol/spec.ts';
import { json, route } from '../route.ts';

const one = '/v1/mcp/profiles/:name';

export const mcpRoutes = [
  route({
    method: 'GET',
    path: '/v1/mcp/profiles',
    summary: 'All profiles for MCP clients, with who is connected; no tokens',
    answers: { 200: z.strictObject({ profiles: z.array(mcpProfileView) }) },
    handle: ({ services: { mcp } }) => json({ profiles: mcp.list() }),
  }),
  route({
    method: 'PUT',
    path: one,
    summary: 'Makes a profile, or replaces it: the token of the answer is told once, an older one is over',
    body: mcpProfileBody.extend({ port: z.number().int().min(1).max(65535).optional() }),
    answers: { 200: mcpTokenView },
    handle: async ({ services: { mcp }, params, body }) => {
      const { spec, images, port, max_sandboxes, max_sessions, idle_ms, approved_dockerfile } = body;
      parseSpec(spec);
      const profile = {
        spec: spec as SpecInput,
        images,
        maxSandboxes: max_sandboxes,
        maxSessions: max_sessions,
        idleMs: idle_ms,
        ...(approved_dockerfile === undefined ? {} : { approvedDockerfile: approved_dockerfile }),
      };
      return json(await mcp.serve(named(params.name), profile, port));
    },
  }),
  route({
    method: 'POST',
    path: `${one}/token`,
    summary: 'A new token for a profile; the old one is over, and so are its clients',
    body: z.strictObject({}),
    answers: { 200: mcpTokenView },
    handle: async ({ services: { mcp }, params }) => json(await mcp.renewToken(named(params.name))),
  }),
  route({
    method: 'DELETE',
    path: one,
    summary: 'Revokes a profile; answers when its clients are gone, and their sandboxes',
    answers: { 204: undefined },
    handle: async ({ services: { mcp }, params }) => {
      await mcp.revoke(named(params.name));
      return { type: 'empty' };
    },
  }),
];

function named(text: string): string {
  const name = profileName.safeParse(text);
  if (name.success) return name.data;
  throw new SallyportError(
    'request_invalid',
    `${JSON.stringify(text.slice(0, 60))} is no name of a profile`,
    {
      advice: 'Use lower case letters, digits and dashes.',
      details: { field: 'name' },
    },
  );
}
