import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { littleDaemon } from '../../test/support/little-daemon.ts';
import type { ApprovalView, EvaluationView } from '../protocol/guard.ts';

async function guarded() {
  const little = await littleDaemon();
  const post = async (path: string, body: unknown, headers: Record<string, string> = {}) =>
    await little.ask('POST', path, { body: JSON.stringify(body), headers });
  const pending = async (command = 'rm -rf /'): Promise<ApprovalView> =>
    (await post('/v1/approvals', { command })).json as ApprovalView;
  return { ...little, post, pending };
}

const code = (json: unknown): string => (json as { error: { code: string } }).error.code;
const approver = { 'sallyport-approver': 'approver' };

describe('[C1] the guard over HTTP', () => {
  test('judges lines, words and tools, by the lists of the user as they are now', async () => {
    const { post, socketPath } = await guarded();
    const judged = async (body: object) => (await post('/v1/evaluate', body)).json as EvaluationView;
    expect(await judged({ command: 'ls | head' })).toEqual({
      command: 'ls | head',
      route: 'host',
      class: 'safe',
      confirm: false,
      reasons: [],
    });
    expect(await judged({ argv: ['rm', '-rf', '/'] })).toMatchObject({ class: 'destructive', confirm: true });
    expect(await judged({ argv: ['echo', 'rm -rf /; $(id)'] })).toMatchObject({ class: 'safe' });
    expect(await judged({ tool: 'frob', args: { a: 1 } })).toMatchObject({
      class: 'unknown',
      route: 'sandbox',
    });
    expect(await judged({ tool: 'bash', args: { command: 'npm i' } })).toMatchObject({ class: 'install' });
    writeFileSync(
      join(dirname(socketPath), 'config.yaml'),
      "guard:\n  blocked: ['git push']\n  confirm: [install]\n",
    );
    expect(await judged({ command: 'git push' })).toMatchObject({ route: 'deny', class: 'blocked' });
    expect(await judged({ command: 'npm i' })).toMatchObject({ route: 'sandbox', confirm: true });
    expect(code((await post('/v1/approvals', { command: 'git push' })).json)).toBe('refused_by_policy');
    expect((await post('/v1/evaluate', { command: 'ls', argv: ['ls'] })).status).toBe(400);
    expect((await post('/v1/evaluate', {})).status).toBe(400);
  });

  test('[N5] remembers an answer for the session that is named, and for nobody where none is', async () => {
    const { post } = await guarded();
    const state = async (session?: string): Promise<ApprovalView> =>
      (await post('/v1/approvals', { command: 'npm i x', ...(session === undefined ? {} : { session }) }))
        .json as ApprovalView;
    for (const session of ['mine', undefined]) {
      const { id } = await state(session);
      const answer = { decision: 'approve', remember: true };
      expect((await post(`/v1/approvals/${id}/answer`, answer, approver)).status).toBe(200);
    }
    expect((await state('mine')).state).toBe('approved');
    for (const session of [undefined, 'none', 'other']) expect((await state(session)).state).toBe('pending');
  });

  test('takes an answer only from an approver, and not from who asked', async () => {
    const { post, pending, ask } = await guarded();
    const { id } = await pending();
    const answer = { decision: 'approve' };
    for (const headers of [{}, { 'sallyport-approver': 'wrong' }, { 'sallyport-approver': '' }]) {
      const refused = await post(`/v1/approvals/${id}/answer`, answer, headers);
      expect(refused.status).toBe(403);
      expect(code(refused.json)).toBe('approval_refused');
    }
    expect((await ask('GET', `/v1/approvals/${id}`)).json).toMatchObject({ state: 'pending' });
    const decision = ask('GET', `/v1/approvals/${id}/decision`);
    const answered = await post(`/v1/approvals/${id}/answer`, answer, approver);
    expect(answered.json).toMatchObject({ state: 'approved', by: 'approver' });
    expect((await decision).json).toMatchObject({ id, state: 'approved' });
    expect((await post(`/v1/approvals/${id}/answer`, answer, approver)).status).toBe(409);
  });

  test('is an event, expires, is listed and put on record', async () => {
    const { post, sandboxes, ask, logged } = await guarded();
    const events = sandboxes.events.follow(sandboxes.events.sequence, new AbortController().signal);
    const asked = await post('/v1/approvals', { command: 'rm -rf /', expires_in_ms: 1 });
    const { id } = asked.json as ApprovalView;
    const told: unknown[] = [];
    for await (const event of events) {
      told.push(event);
      if (event.type === 'approval.decided') break;
    }
    expect(told).toMatchObject([
      { type: 'approval.pending', approval_id: id, command: 'rm -rf /', class: 'destructive' },
      { type: 'approval.decided', approval_id: id, state: 'expired', by: 'time' },
    ]);
    expect((await ask('GET', '/v1/approvals')).json).toEqual({ approvals: [] });
    expect((await ask('GET', '/v1/approvals?all=true')).json).toMatchObject({ approvals: [{ id }] });
    expect(logged).toMatchObject([
      { type: 'approval', approval: id, outcome: 'expired', command: 'rm -rf /' },
    ]);
    expect((await post('/v1/approvals', { command: 'ls', expires_in_ms: 300_001 })).status).toBe(400);
  });

  test('puts on record what a client ran on the host, and calls it a guarded run whatever it says', async () => {
    const { post, logged } = await guarded();
    const record = { command: 'ls', where: 'host', class: 'safe', reason: 'safe', outcome: 'exit 0' };
    expect((await post('/v1/guard/records', record)).status).toBe(204);
    expect((await post('/v1/guard/records', { ...record, type: 'exec' })).status).toBe(400);
    expect(logged).toEqual([{ type: 'guard', ...record }]);
  });

  test('says no to who waits when the daemon stops', async () => {
    const { pending, ask, daemon } = await guarded();
    const { id } = await pending();
    const decision = ask('GET', `/v1/approvals/${id}/decision`);
    // Asked before it stops: the answer to a second request comes after the first was taken.
    await ask('GET', '/v1/health');
    await daemon.stop(true);
    expect((await decision).json).toMatchObject({ state: 'denied', by: 'daemon' });
  });
});
