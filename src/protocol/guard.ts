/** The guard as the API has it: a command to be judged, a question that waits for an answer, and what became of it. */

import { z } from 'zod';
import { commandRoutes, riskClasses } from './risk-classes.ts';
import { argvSchema } from './spec-values.ts';

const text = z
  .string()
  .min(1)
  .max(64 * 1024);

/** One of `command`, `argv` and `tool`. */
const guarded = {
  /** A line of shell. */
  command: text.optional(),
  /** A program and its arguments; no shell reads them. */
  argv: argvSchema.optional(),
  /** A tool of an agent by its name, and what it is called with. */
  tool: z
    .string()
    .regex(/^[A-Za-z0-9][\w.+-]{0,99}$/, 'is no name of a tool')
    .optional(),
  args: z.unknown().optional(),
  /** Absolute; what is below it is the project's own. */
  cwd: z.string().startsWith('/').max(4095).optional(),
};

export const evaluateBody = z.strictObject(guarded);

export const evaluationView = z.strictObject({
  /** As it was judged; the spans count in it. */
  command: z.string(),
  route: z.enum(commandRoutes),
  class: z.enum(riskClasses),
  confirm: z.boolean(),
  reasons: z.array(
    z.strictObject({
      rule: z.string(),
      span: z.strictObject({ start: z.number().int(), end: z.number().int() }),
      text: z.string(),
    }),
  ),
});
export type EvaluationView = z.infer<typeof evaluationView>;

export const mostApprovalMs = 300_000;

export const askBody = z.strictObject({
  ...guarded,
  /** Whose "remember for this session" counts. Absent: nothing is remembered. */
  session: z.string().min(1).max(200).optional(),
  /** At most 300 s: nobody answered by then means no. */
  expires_in_ms: z.number().int().min(1).max(mostApprovalMs).default(mostApprovalMs),
});
export type AskInput = z.input<typeof askBody>;

const approvalStates = ['pending', 'approved', 'denied', 'expired', 'withdrawn'] as const;
export type ApprovalState = (typeof approvalStates)[number];

export const approvalView = z.strictObject({
  id: z.string(),
  state: z.enum(approvalStates),
  command: z.string(),
  cwd: z.string().optional(),
  class: z.enum(riskClasses),
  reasons: z.array(z.string()),
  asked_at: z.iso.datetime(),
  expires_at: z.iso.datetime(),
  /** An approval takes the typed word: three of this class were approved within a minute. */
  needs_word: z.boolean(),
  /** Whether an answer may hold for the session. */
  may_remember: z.boolean(),
  /** Who decided: approver, asker, remembered, time, daemon. */
  by: z.string().optional(),
});
export type ApprovalView = z.infer<typeof approvalView>;

export const answerBody = z.strictObject({
  decision: z.enum(['approve', 'deny']),
  /** `approve`, where the view says `needs_word`. */
  word: z.string().max(100).optional(),
  /** For the class and the session of the question. Refused for what destroys, is unknown or blocked. */
  remember: z.boolean().default(false),
});
export type AnswerInput = z.input<typeof answerBody>;
export type AnswerBody = z.output<typeof answerBody>;

/** What a client reports of a guarded command that no sandbox ran. */
export const guardRecordBody = z.strictObject({
  command: text,
  where: z.enum(['host', 'host without isolation', 'nowhere']),
  class: z.enum(riskClasses),
  reason: z.string().max(1000),
  outcome: z.string().max(200),
  approval: z.string().max(50).optional(),
  duration_ms: z.number().min(0).optional(),
});
export type GuardRecord = z.infer<typeof guardRecordBody>;

/** Holds the token of who may answer; it is not the token of the API. */
export const approverHeader = 'sallyport-approver';

/** What a guarded command came to. */
export interface GuardResult {
  readonly status: 'success' | 'error' | 'rejected' | 'timeout';
  readonly stdout: string;
  readonly stderr: string;
  /** 128 + n where a signal ended it; null where nothing ran to an end. */
  readonly exitCode: number | null;
  readonly durationMs: number;
  readonly sandboxed: boolean;
  /** `docker` and the like, `host`, or `none` where nothing ran. */
  readonly engine: string;
  /** Why it ran there, or why it did not run. */
  readonly reason: string;
  /** The sandbox with the writable copy of the folder, which is kept for `diff` and `apply`. */
  readonly sandbox?: string;
}
