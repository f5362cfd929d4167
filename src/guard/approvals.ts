/**
 * Questions that wait for a person: asked by a client, answered by an approver, or over by themselves. It decides nothing by
 * itself but no: what expires, is withdrawn or lost is not approved. Kept in memory; a daemon that ends denies them all.
 */

import { deferred } from '../lib/deferred.ts';
import type { Evaluation } from '../policy/command-risk/risk.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { EventDraft } from '../protocol/events.ts';
import type { AnswerBody, ApprovalState, ApprovalView } from '../protocol/guard.ts';
import type { RiskClass } from '../protocol/risk-classes.ts';

export interface Question {
  readonly command: string;
  readonly cwd?: string;
  readonly evaluation: Evaluation;
  readonly session: string;
  readonly expiresInMs: number;
  /**
   * Of a question from a sandbox, whose session names the sandbox: what an approval does here, before it counts as one. If this
   * fails, the question stays. Such an answer is never remembered.
   */
  readonly apply?: () => void;
}

export interface ApprovalsWorld {
  readonly now: () => Date;
  /** 16 random hexadecimal digits at least. */
  readonly newId: () => string;
  readonly tell: (event: EventDraft) => void;
  readonly record: (decided: ApprovalView) => void;
  /** Calls back after so long, unless the returned function is called. */
  readonly after: (ms: number, work: () => void) => () => void;
}

interface Kept {
  readonly id: string;
  readonly question: Question;
  readonly askedAt: Date;
  readonly decided: ReturnType<typeof deferred<void>>;
  state: ApprovalState;
  by?: string;
  cancelTimer: () => void;
}

/** Whoever approves this many of a class within that time may not be reading any more. */
const haste = { approvals: 3, withinMs: 60_000 };
export const approvalWord = 'approve';
const mostPending = 100;
/** SECURITY: questions from sandboxes leave places for those of this machine, and one sandbox leaves places for the others. */
const mostFromSandboxes = 50;
const mostFromSandbox = 10;
const mostKept = 200;
const toldCharacters = 2000;
/** SECURITY: each of these is judged on its own, every time. */
const neverRemembered: ReadonlySet<RiskClass> = new Set(['destructive', 'unknown', 'blocked']);

export class Approvals {
  readonly #world: ApprovalsWorld;
  readonly #kept = new Map<string, Kept>();
  readonly #approvedAt = new Map<RiskClass, number[]>();
  /** `<class> <session>`. */
  readonly #remembered = new Set<string>();
  #closed = false;

  constructor(world: ApprovalsWorld) {
    this.#world = world;
  }

  /** Pending, or approved at once where that was remembered. */
  ask(question: Question): ApprovalView {
    if (this.#closed) throw new SallyportError('daemon_stopping', 'the daemon is stopping');
    this.#requirePlace(question);
    const askedAt = this.#world.now();
    const kept: Kept = {
      id: `ap-${this.#world.newId()}`,
      question,
      askedAt,
      decided: deferred<void>(),
      state: 'pending',
      cancelTimer: () => {},
    };
    this.#keep(kept);
    const { class: riskClass } = question.evaluation;
    if (mayRemember(question) && this.#remembered.has(sessionKey(riskClass, question.session))) {
      this.#decide(kept, 'approved', 'remembered');
      return this.#view(kept);
    }
    kept.cancelTimer = this.#world.after(question.expiresInMs, () => this.#decide(kept, 'expired', 'time'));
    const view = this.#view(kept);
    this.#world.tell({
      type: 'approval.pending',
      approval_id: kept.id,
      command: question.command.slice(0, toldCharacters),
      class: riskClass,
      expires_at: view.expires_at,
    });
    return view;
  }

  list(): readonly ApprovalView[] {
    return [...this.#kept.values()].map((kept) => this.#view(kept));
  }

  get(id: string): ApprovalView {
    return this.#view(this.#find(id));
  }

  /** Resolves when it is decided. Whoever waits is who asked: when they are gone, so is the question, unless it is to be kept. */
  async decision(
    id: string,
    signal: AbortSignal,
    { keep = false }: { readonly keep?: boolean } = {},
  ): Promise<ApprovalView> {
    const kept = this.#find(id);
    const gone = (): void => void (keep || this.withdraw(id));
    if (signal.aborted) gone();
    signal.addEventListener('abort', gone, { once: true });
    try {
      await kept.decided.promise;
    } finally {
      signal.removeEventListener('abort', gone);
    }
    return this.#view(kept);
  }

  /** By an approver; that it is one was seen to by the caller. */
  answer(id: string, { decision, word, remember }: AnswerBody): ApprovalView {
    const kept = this.#find(id);
    if (kept.state !== 'pending') {
      throw new SallyportError('approval_over', `the question ${id} is ${kept.state}`, {
        details: { approval: id, state: kept.state },
      });
    }
    const { class: riskClass } = kept.question.evaluation;
    if (decision === 'deny') this.#decide(kept, 'denied', 'approver');
    else {
      if (remember && !mayRemember(kept.question)) {
        throw new SallyportError(
          'approval_refused',
          `a ${riskClass} command of this kind is never remembered`,
          {
            details: { approval: id, class: riskClass },
            advice: 'Approve it without --remember.',
          },
        );
      }
      if (this.#needsWord(riskClass) && word !== approvalWord) {
        throw new SallyportError('approval_word', `the question ${id} is not approved without the word`, {
          details: { approval: id, class: riskClass },
        });
      }
      kept.question.apply?.();
      if (remember) this.#remembered.add(sessionKey(riskClass, kept.question.session));
      this.#recent(riskClass).push(this.#world.now().getTime());
      this.#decide(kept, 'approved', 'approver');
    }
    return this.#view(kept);
  }

  /** By who asked: one that is decided stays as it is. */
  withdraw(id: string): void {
    this.#decide(this.#find(id), 'withdrawn', 'asker');
  }

  /** The daemon stops: nobody can answer any more. */
  close(): void {
    this.#closed = true;
    for (const kept of this.#kept.values()) this.#decide(kept, 'denied', 'daemon');
  }

  #requirePlace({ apply, session }: Question): void {
    const pending = [...this.#kept.values()].filter(({ state }) => state === 'pending');
    const inside = pending.filter(({ question }) => question.apply !== undefined);
    const own = inside.filter(({ question }) => question.session === session);
    const isFull =
      pending.length >= mostPending ||
      (apply !== undefined && (inside.length >= mostFromSandboxes || own.length >= mostFromSandbox));
    if (!isFull) return;
    throw new SallyportError('approvals_full', `${pending.length} questions wait for an answer`);
  }

  #keep(kept: Kept): void {
    for (const [id, { state }] of this.#kept) {
      if (this.#kept.size < mostKept) break;
      if (state !== 'pending') this.#kept.delete(id);
    }
    this.#kept.set(kept.id, kept);
  }

  #find(id: string): Kept {
    const kept = this.#kept.get(id);
    if (kept !== undefined) return kept;
    throw new SallyportError(
      'approval_not_found',
      `there is no question ${JSON.stringify(id.slice(0, 40))}`,
      {
        details: { approval: id.slice(0, 40) },
      },
    );
  }

  #decide(kept: Kept, state: ApprovalState, by: string): void {
    if (kept.state !== 'pending') return;
    kept.state = state;
    kept.by = by;
    kept.cancelTimer();
    if (state !== 'pending') this.#world.tell({ type: 'approval.decided', approval_id: kept.id, state, by });
    this.#world.record(this.#view(kept));
    kept.decided.resolve();
  }

  #recent(riskClass: RiskClass): number[] {
    const after = this.#world.now().getTime() - haste.withinMs;
    const recent = (this.#approvedAt.get(riskClass) ?? []).filter((time) => time > after);
    this.#approvedAt.set(riskClass, recent);
    return recent;
  }

  #needsWord(riskClass: RiskClass): boolean {
    return this.#recent(riskClass).length >= haste.approvals;
  }

  #view({ id, state, by, question, askedAt }: Kept): ApprovalView {
    const { command, cwd, evaluation, expiresInMs } = question;
    return {
      id,
      state,
      command,
      ...(cwd === undefined ? {} : { cwd }),
      class: evaluation.class,
      reasons: evaluation.reasons.map(({ text }) => text),
      asked_at: askedAt.toISOString(),
      expires_at: new Date(askedAt.getTime() + expiresInMs).toISOString(),
      needs_word: this.#needsWord(evaluation.class),
      may_remember: mayRemember(question),
      ...(by === undefined ? {} : { by }),
    };
  }
}

const mayRemember = ({ evaluation, apply }: Question): boolean =>
  apply === undefined && !neverRemembered.has(evaluation.class);

const sessionKey = (riskClass: RiskClass, session: string): string => `${riskClass} ${session}`;
