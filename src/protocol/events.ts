/**
 * What happens, as numbered facts. A number is given once, by one daemon after the other, and never again; an event is in
 * the log before anybody hears of it.
 */

import { z } from 'zod';
import { sandboxStates } from './states.ts';

const base = { sequence: z.number().int().positive(), at: z.iso.datetime(), sandbox_id: z.string() };
const exec = { exec_id: z.string() };

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
  }),
]);

export type SallyEvent = z.infer<typeof eventSchema>;

type WithoutStamp<T> = T extends unknown ? Omit<T, 'sequence' | 'at'> : never;
/** An event as its maker writes it; the log gives it its number and its time. */
export type EventDraft = WithoutStamp<SallyEvent>;
