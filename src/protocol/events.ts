/**
 * What happens, as numbered facts. A number is given once, by one daemon after the other, and never again; an event is in
 * the log before anybody hears of it.
 */

import { z } from 'zod';
import { riskClasses } from './risk-classes.ts';
import { sandboxStates } from './states.ts';

const base = { sequence: z.number().int().positive(), at: z.iso.datetime(), sandbox_id: z.string() };
/** Of no sandbox. */
const apart = { ...base, sandbox_id: z.string().optional() };
const exec = { exec_id: z.string() };
const egress = {
  entrance: z.string(),
  host: z.string(),
  /** 0: only the name was asked for. */
  port: z.number().int(),
  bytes_out: z.number().int(),
  bytes_in: z.number().int(),
  duration_ms: z.number(),
  status: z.number().int().optional(),
  error: z.string().optional(),
  skipped: z.number().int(),
};
/** Of this machine, and inside. */
const port = { host: z.number().int(), box: z.number().int() };
const service = { service: z.string(), required: z.boolean() };

export const eventSchema = z.discriminatedUnion('type', [
  z.strictObject({
    ...base,
    type: z.literal('sandbox.state'),
    name: z.string(),
    from: z.enum(sandboxStates).optional(),
    to: z.enum(sandboxStates),
    reason: z.string().optional(),
  }),
  /** Long work on the way to READY: an image that is pulled, a tree that is copied. */
  z.strictObject({
    ...base,
    type: z.literal('sandbox.progress'),
    step: z.string(),
    message: z.string(),
    current: z.number().optional(),
    total: z.number().optional(),
  }),
  /** Something worth knowing that changed no state: an option that weakens, a probe that healed, a notice of porter. */
  z.strictObject({ ...base, type: z.literal('sandbox.note'), code: z.string(), message: z.string() }),
  z.strictObject({ ...base, ...service, type: z.literal('service.ready') }),
  /** Its first attempt: it did not become healthy. */
  z.strictObject({ ...base, ...service, type: z.literal('service.failed'), reason: z.string() }),
  /** It was ready, and runs no longer. */
  z.strictObject({ ...base, ...service, type: z.literal('service.ended'), reason: z.string() }),
  z.strictObject({
    ...base,
    ...port,
    type: z.literal('port.published'),
    addresses: z.array(z.string()),
  }),
  z.strictObject({ ...base, ...port, type: z.literal('port.unpublished') }),
  z.strictObject({
    ...base,
    ...exec,
    type: z.literal('exec.started'),
    argv: z.array(z.string()),
    background: z.boolean(),
  }),
  z.strictObject({
    ...base,
    ...exec,
    type: z.literal('exec.ended'),
    state: z.enum(['exited', 'refused', 'lost']),
    exit_code: z.number().int().optional(),
    signal: z.string().optional(),
    timed_out: z.boolean(),
    oom_killed: z.boolean(),
    /** The error code of a refused or lost exec. */
    error: z.string().optional(),
  }),
  /** The daemon stops a sandbox for its disk usage. */
  z.strictObject({
    ...base,
    type: z.literal('disk.exceeded'),
    rule: z.enum(['limit', 'reserve']),
    of: z.enum(['bytes', 'files']),
    limit: z.number(),
    used: z.number(),
    /** Free on the engine's disk, for the reserve. */
    free: z.number().optional(),
    /** `used` is not measured: it may use as much (`limit`), or wrote as much (`reserve`). */
    estimated: z.boolean().optional(),
    service: z.string().optional(),
  }),
  /** A decision of the gate. Many alike become one: `skipped` is how many were not told since the last of this sandbox. */
  z.strictObject({ ...base, type: z.literal('egress.allowed'), ...egress, rule: z.string() }),
  z.strictObject({
    ...base,
    type: z.literal('egress.denied'),
    ...egress,
    code: z.string(),
    reason: z.string(),
  }),
  /** The rules were changed while it ran. */
  z.strictObject({
    ...base,
    type: z.literal('egress.changed'),
    allow: z.array(z.string()),
    deny: z.array(z.string()),
    closed: z.number().int(),
  }),
  /** A guarded command waits for somebody to say yes or no: `sally approve`, `sally deny`. */
  z.strictObject({
    ...apart,
    type: z.literal('approval.pending'),
    approval_id: z.string(),
    /** At most 2000 characters of it. */
    command: z.string(),
    class: z.enum(riskClasses),
    expires_at: z.iso.datetime(),
  }),
  z.strictObject({
    ...apart,
    type: z.literal('approval.decided'),
    approval_id: z.string(),
    state: z.enum(['approved', 'denied', 'expired', 'withdrawn']),
    by: z.string(),
  }),
  /** What is done so that an engine answers: looked for, started, waited for. */
  z.strictObject({ ...apart, type: z.literal('engine.progress'), step: z.string(), message: z.string() }),
  /** The engine went away, or is there again. */
  z.strictObject({ ...apart, type: z.literal('engine.reachable'), reachable: z.boolean() }),
]);

export type SallyEvent = z.infer<typeof eventSchema>;

type WithoutStamp<T> = T extends unknown ? Omit<T, 'sequence' | 'at'> : never;
/** An event as its maker writes it; the log gives it its number and its time. */
export type EventDraft = WithoutStamp<SallyEvent>;
