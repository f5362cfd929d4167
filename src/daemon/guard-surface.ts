/** The guard's half in the daemon: judges for clients, holds their questions, and knows who may answer. It runs nothing. */

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { Approvals } from '../guard/approvals.ts';
import type { GuardEnvironment } from '../guard/config.ts';
import { judge, readGuardRules } from '../guard/judge.ts';
import type { AuditEntry } from '../protocol/audit.ts';
import type { EventDraft } from '../protocol/events.ts';
import type { AuditSurface, GuardSurface } from './surface.ts';

export interface GuardWorld {
  readonly environment: Pick<GuardEnvironment, 'home' | 'userFile'>;
  /** Of an approver; it is never given to who asks. */
  readonly approverToken: string;
  readonly tell: (event: EventDraft) => void;
  readonly record: (entry: AuditEntry) => void;
  readonly audit: AuditSurface;
  /** What could not be told or recorded; a decision stands all the same. */
  readonly report: (what: string, error: unknown) => void;
}

export function guardSurface(world: GuardWorld): GuardSurface {
  const attempt = (what: string, work: () => void): void => {
    try {
      work();
    } catch (error) {
      world.report(what, error);
    }
  };
  const expected = digest(world.approverToken);
  return {
    approvals: new Approvals({
      now: () => new Date(),
      newId: () => randomBytes(8).toString('hex'),
      tell: (event) => attempt('tell of a question', () => world.tell(event)),
      record: ({ id, state, command, class: riskClass, reasons, by }) =>
        attempt('put an answer on record', () =>
          world.record({
            type: 'approval',
            command,
            class: riskClass,
            approval: id,
            reason: reasons[0] ?? '',
            outcome: state,
            ...(by === undefined ? {} : { by }),
          }),
        ),
      after: (ms, work) => {
        const timer = setTimeout(work, ms);
        timer.unref();
        return () => clearTimeout(timer);
      },
    }),
    judge: async (text, cwd) => judge(text, await readGuardRules(world.environment), cwd),
    // SECURITY: digests, so that neither length nor content decides how long the comparison takes.
    isApprover: (token) => timingSafeEqual(digest(token), expected),
    record: world.record,
    audit: world.audit,
  };
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
