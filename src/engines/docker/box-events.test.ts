import { describe, expect, it } from 'vitest';
import { boxEvent } from './box-events.ts';

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
