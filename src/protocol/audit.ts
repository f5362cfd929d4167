/** A line of the audit log: what ran, where, why, and how it ended; and what was decided about it. */

import { parseDuration } from '../lib/durations.ts';

export const auditTypes = ['exec', 'guard', 'approval', 'audit'] as const;
/**
 * `exec`: a command in a sandbox. `guard`: what became of a guarded command that did not run in one. `approval`: an answer to
 * a question. `audit`: the log itself was found damaged.
 */
export type AuditType = (typeof auditTypes)[number];

export interface AuditEntry {
  readonly type: AuditType;
  /** The name of the sandbox and the id of the command in it. */
  readonly sandbox?: string;
  readonly exec?: string;
  readonly argv?: readonly string[];
  /** A line of shell, where it was given as one. */
  readonly command?: string;
  readonly where?: string;
  readonly class?: string;
  readonly approval?: string | undefined;
  readonly by?: string;
  readonly reason: string;
  readonly outcome: string;
  readonly duration_ms?: number | undefined;
}

/** As it is kept: numbered, and with the hash of the line before. */
export interface AuditLineView extends AuditEntry {
  readonly n: number;
  readonly prev: string;
  readonly at: string;
}

export interface AuditProblem {
  /** Where, as `audit.jsonl.1:17`; absent where it is about the whole. */
  readonly place?: string | undefined;
  readonly text: string;
}

/** Whether all of the log is there. */
export interface AuditVerdict {
  readonly ok: boolean;
  readonly lines: number;
  /** Number and hash of the last line, to be noted where nobody can change it. */
  readonly head?: { readonly n: number; readonly hash: string } | undefined;
  readonly problems: readonly AuditProblem[];
}

/** A duration ago or a time, in milliseconds since 1970. Undefined: it is neither. */
export function sinceOf(text: string, nowMs: number): number | undefined {
  const ago = parseDuration(text);
  const at = ago === undefined ? Date.parse(text) : nowMs - ago;
  return Number.isNaN(at) ? undefined : at;
}
