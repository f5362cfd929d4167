import { describe, expect, test } from 'vitest';
import { evaluateCommand } from '../policy/command-risk/evaluate.ts';
import type { EventDraft } from '../protocol/events.ts';
import type { ApprovalView } from '../protocol/guard.ts';
import { Approvals } from './approvals.ts';

/** A clock that stands until it is moved. */
function world() {
  let nowMs = Date.parse('2026-11-16T10:00:00Z');
  let number = 0;
  const timers = new Set<{ readonly at: number; readonly work: () => void }>();
  const events: EventDraft[] = [];
  const recorded: ApprovalView[] = [];
  const approvals = new Approvals({
    now: () => new Date(nowMs),
    newId: () => String(++number).padStart(16, '0'),
    tell: (event) => void events.push(event),
    record: (view) => void recorded.push(view),
    after: (ms, work) => {
      const timer = { at: nowMs + ms, work };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
  });
  const pass = (ms: number): void => {
    nowMs += ms;
    for (const timer of [...timers]) {
      if (timer.at > nowMs) continue;
      timers.delete(timer);
      timer.work();
    }
  };
  const ask = (command: string, session = 'one', expiresInMs = 300_000): ApprovalView =>
    approvals.ask({ command, evaluation: evaluateCommand(command), session, expiresInMs });
  return { approvals, pass, ask, events, recorded, timers };
}

const yes = { decision: 'approve', remember: false } as const;
const no = { decision: 'deny', remember: false } as const;
const never = new AbortController().signal;

describe('[C1] a question of the guard', () => {
  test('is told, waits, and is answered once', async () => {
    const { approvals, ask, events, recorded } = world();
    const { id, state } = ask('rm -rf /');
    expect(state).toBe('pending');
    const decision = approvals.decision(id, never);
    expect(approvals.answer(id, yes)).toMatchObject({ state: 'approved', by: 'approver' });
    expect(await decision).toMatchObject({ id, state: 'approved' });
    expect(() => approvals.answer(id, no)).toThrow(expect.objectContaining({ code: 'approval_over' }));
    expect(events).toMatchObject([
      { type: 'approval.pending', approval_id: id, class: 'destructive', command: 'rm -rf /' },
      { type: 'approval.decided', approval_id: id, state: 'approved', by: 'approver' },
    ]);
    expect(recorded).toMatchObject([{ id, state: 'approved' }]);
  });

  test('that nobody answers within 300 s is denied', async () => {
    const { approvals, ask, pass } = world();
    const { id, expires_at: expiresAt } = ask('rm -rf /');
    expect(expiresAt).toBe('2026-11-16T10:05:00.000Z');
    const decision = approvals.decision(id, never);
    pass(299_999);
    expect(approvals.get(id).state).toBe('pending');
    pass(1);
    expect(await decision).toMatchObject({ state: 'expired', by: 'time' });
    expect(() => approvals.answer(id, yes)).toThrow(expect.objectContaining({ code: 'approval_over' }));
  });

  test('goes with who asked, and with the daemon', async () => {
    const { approvals, ask, timers } = world();
    const gone = new AbortController();
    const first = approvals.decision(ask('rm -rf /').id, gone.signal);
    gone.abort();
    expect(await first).toMatchObject({ state: 'withdrawn', by: 'asker' });
    const second = approvals.decision(ask('rm -rf /').id, never);
    approvals.close();
    expect(await second).toMatchObject({ state: 'denied', by: 'daemon' });
    expect(() => ask('rm -rf /')).toThrow(expect.objectContaining({ code: 'daemon_stopping' }));
    expect(timers.size).toBe(0);
  });

  test('takes the typed word after three approvals of its class within 60 s', () => {
    const { approvals, ask, pass } = world();
    for (let count = 0; count < 3; count++) approvals.answer(ask('rm -rf /').id, yes);
    const { id, needs_word: needsWord } = ask('rm -rf /');
    expect(needsWord).toBe(true);
    for (const word of [undefined, 'yes', 'Approve', 'approve ']) {
      const answer = { ...yes, ...(word === undefined ? {} : { word }) };
      expect(() => approvals.answer(id, answer)).toThrow(expect.objectContaining({ code: 'approval_word' }));
    }
    // Another class is another habit.
    expect(ask('npm install x').needs_word).toBe(false);
    expect(approvals.answer(id, { ...yes, word: 'approve' }).state).toBe('approved');
    expect(approvals.answer(ask('rm -rf /').id, no).state).toBe('denied');
    pass(60_000);
    expect(ask('rm -rf /').needs_word).toBe(false);
  });

  test('is remembered for the session and the class, and never for what destroys or is unknown', () => {
    const { approvals, ask, events } = world();
    const install = ask('npm install x');
    expect(install.may_remember).toBe(true);
    approvals.answer(install.id, { ...yes, remember: true });
    const told = events.filter(({ type }) => type === 'approval.pending').length;
    expect(ask('npm install y')).toMatchObject({ state: 'approved', by: 'remembered' });
    expect(events.filter(({ type }) => type === 'approval.pending')).toHaveLength(told);
    expect(ask('npm install y', 'two').state).toBe('pending');
    expect(ask('make').state).toBe('pending');
    for (const command of ['rm -rf /', 'frobnicate']) {
      const { id, may_remember: mayRemember } = ask(command);
      expect(mayRemember).toBe(false);
      expect(() => approvals.answer(id, { ...yes, remember: true })).toThrow(
        expect.objectContaining({ code: 'approval_refused' }),
      );
      expect(approvals.answer(id, yes).state).toBe('approved');
      expect(ask(command).state).toBe('pending');
    }
  });

  test('has at most so many beside it', () => {
    const { ask, approvals } = world();
    for (let count = 0; count < 100; count++) ask('rm -rf /');
    expect(() => ask('rm -rf /')).toThrow(expect.objectContaining({ code: 'approvals_full' }));
    for (const { id } of approvals.list()) approvals.answer(id, no);
    for (let count = 0; count < 500; count++) approvals.answer(ask('rm -rf /').id, no);
    expect(approvals.list().length).toBeLessThanOrEqual(200);
  });

  test('[N5] of a sandbox leaves places: one sandbox for the others, all of them for this machine', () => {
    const { approvals, ask } = world();
    const fromSandbox = (session: string): ApprovalView =>
      approvals.ask({
        command: 'sally net allow box x.org',
        evaluation: evaluateCommand('curl x.org'),
        session,
        expiresInMs: 300_000,
        apply: () => {},
      });
    const full = expect.objectContaining({ code: 'approvals_full' });
    for (let count = 0; count < 10; count++) fromSandbox('net 0');
    expect(() => fromSandbox('net 0')).toThrow(full);
    for (let count = 0; count < 40; count++) fromSandbox(`net ${1 + (count % 4)}`);
    expect(() => fromSandbox('net 9')).toThrow(full);
    for (let count = 0; count < 50; count++) expect(ask('rm -rf /').state).toBe('pending');
    expect(() => ask('rm -rf /')).toThrow(full);
    // An answer makes a place again.
    const [first] = approvals.list();
    approvals.answer(first?.id ?? '', no);
    expect(fromSandbox('net 0').state).toBe('pending');
  });

  test('of an id that is not there is not found', () => {
    expect(() => world().approvals.get('ap-none')).toThrow(
      expect.objectContaining({ code: 'approval_not_found' }),
    );
  });
});
