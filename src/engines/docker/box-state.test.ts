import { describe, expect, it } from 'vitest';
import { boxState, boxStatus } from './box-state.ts';

const container = {
  id: 'c1',
  name: 'box',
  image: 'image',
  labels: {},
  status: 'paused',
  running: false,
  exitCode: 0,
  oomKilled: false,
  hostConfig: {},
};

describe('the state of a box', () => {
  it.each([
    ['configured', 'created'],
    ['created', 'created'],
    ['running', 'running'],
    ['restarting', 'running'],
    ['paused', 'paused'],
    ['exited', 'stopped'],
    ['removing', 'stopped'],
    ['dead', 'stopped'],
  ])('%s is %s', (word, status) => {
    expect(boxStatus('c1', word)).toBe(status);
  });

  it('is never guessed', () => {
    expect(() => boxStatus('c1', 'dreaming')).toThrow(expect.objectContaining({ code: 'engine_protocol' }));
    expect(() => boxStatus('c1', 'constructor')).toThrow(
      expect.objectContaining({ code: 'engine_protocol' }),
    );
  });

  it('counts a paused box as running, whatever the engine says: its processes are there', () => {
    expect(boxState(container)).toEqual({ status: 'paused', running: true, exitCode: 0, oomKilled: false });
    expect(boxState({ ...container, status: 'exited', exitCode: 3 })).toMatchObject({
      status: 'stopped',
      running: false,
      exitCode: 3,
    });
  });
});
