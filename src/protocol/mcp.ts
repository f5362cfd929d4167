/**
 * Profiles of the MCP server over HTTP as the API has them: what a person decided for the clients of one token. The token is
 * told once, when it is made; no view has a field for what is kept of it.
 */

import { z } from 'zod';
import type { SpecInput } from './spec.ts';

export const profileName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, 'is not a name of lower case letters, digits and dashes');

const image = z.string().min(1).max(500);
const hour = 3_600_000;

export const mcpProfileBody = z.strictObject({
  /** As a create takes it, in the words of its author; its name is that of a sandbox that stays. Who keeps it parses it. */
  spec: z.record(z.string(), z.unknown()).default({}),
  /** Images that a model may choose from, besides that of the spec. */
  images: z.array(image).max(100).default([]),
  /** For each client. */
  max_sandboxes: z.number().int().min(1).max(100).default(5),
  /** Clients at the same time. */
  max_sessions: z.number().int().min(1).max(100).default(8),
  /** A client that was not heard of for so long is gone, and its sandboxes go. */
  idle_ms: z
    .number()
    .int()
    .min(100)
    .max(24 * hour)
    .default(hour / 2),
  /** The `approval` of the workspace's Dockerfile as somebody saw it. */
  approved_dockerfile: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
});
export type McpProfileInput = z.input<typeof mcpProfileBody>;

/** As the daemon has it. */
export interface McpProfile {
  readonly spec: SpecInput;
  readonly images: readonly string[];
  readonly maxSandboxes: number;
  readonly maxSessions: number;
  readonly idleMs: number;
  readonly approvedDockerfile?: string;
}

export const mcpProfileView = z.strictObject({
  name: z.string(),
  url: z.string(),
  spec: z.record(z.string(), z.unknown()),
  images: z.array(z.string()),
  max_sandboxes: z.number().int(),
  max_sessions: z.number().int(),
  idle_ms: z.number().int(),
  created_at: z.iso.datetime(),
  sessions: z.array(
    z.strictObject({ started_at: z.iso.datetime(), busy: z.boolean(), sandboxes: z.array(z.string()) }),
  ),
});
export type McpProfileView = z.infer<typeof mcpProfileView>;

/** The only answers that have a token. */
export const mcpTokenView = z.strictObject({ name: z.string(), url: z.string(), token: z.string() });
export type McpTokenView = z.infer<typeof mcpTokenView>;
