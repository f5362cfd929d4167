import { describe, expect, it } from 'vitest';
import { connectionTo, httpServer } from '../../../test/support/little-engine.ts';
import { label } from '../../protocol/labels.ts';
import { boxEvent, boxEvents } from './box-events.ts';

const event = (action: string, attributes: Record<string, string> = {}, type = 'container') => ({
  type,
  action,
  id: 'c1',
  attributes,
  timeNano: 0,
});

describe('boxEvent', () => {
  it.each([
    ['start', 'started'],
    ['oom', 'out-of-memory'],
    ['pause', 'paused'],
    ['unpause', 'resumed'],
    ['destroy', 'removed'],
    ['remove', 'removed'],
  ])('%s is %s', (action, kind) => {
    expect(boxEvent(event(action, { exitCode: '0' }))).toEqual({ boxId: 'c1', kind });
  });

  it('tells the exit code with the end', () => {
    expect(boxEvent(event('die', { exitCode: '137' }))).toEqual({
      boxId: 'c1',
      kind: 'ended',
      exitCode: 137,
    });
    expect(boxEvent(event('die'))).toEqual({ boxId: 'c1', kind: 'ended' });
  });

  it('is nothing for what else an engine tells', () => {
    expect(boxEvent(event('create'))).toBeUndefined();
    expect(boxEvent(event('exec_start: porter relay'))).toBeUndefined();
    expect(boxEvent(event('destroy', {}, 'volume'))).toBeUndefined();
  });
});

describe('boxEvents', () => {
  it('[A15] begins at the time of the engine, which is not that of this machine', async () => {
    const nowMs = Date.parse('2001-02-03T04:05:06.789Z');
    const Attributes = {
      [label.owned]: 'true',
      [label.kind]: 'sandbox',
      [label.owner]: 'me',
    };
    const line = (Action: string, atMs: number, owner = 'me'): string =>
      `${JSON.stringify({
        Type: 'container',
        Action,
        Actor: { ID: 'c1', Attributes: { ...Attributes, [label.owner]: owner } },
        timeNano: atMs * 1e6,
      })}\n`;
    let asked: string | null = null;
    const path = await httpServer((request, response) => {
      const url = new URL(request.url ?? '', 'http://engine');
      if (url.pathname.endsWith('/info')) {
        response.end(JSON.stringify({ SystemTime: new Date(nowMs).toISOString() }));
        return;
      }
      asked = url.searchParams.get('since');
      // Podman begins with the whole second, and tells of everybody's.
      response.write(
        line('start', nowMs - 60_000) + line('die', nowMs + 1, 'you') + line('pause', nowMs + 2),
      );
    });
    const controller = new AbortController();
    const told: unknown[] = [];
    for await (const event of boxEvents(connectionTo(path), 'me', controller.signal)) {
      told.push(event);
      controller.abort();
    }
    expect(told).toEqual([{ boxId: 'c1', kind: 'paused' }]);
    expect(Number(asked)).toBeLessThanOrEqual(nowMs / 1000);
    expect(Number(asked)).toBeGreaterThan(nowMs / 1000 - 30);
  });
});
