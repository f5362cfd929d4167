import { describe, expect, it } from 'vitest';
import { lacksRoom } from './free-space.ts';

describe('room for an image', () => {
  it('is missing where one of the places has less than is needed', () => {
    const rooms = [
      { folder: '/a', freeBytes: 100 },
      { folder: '/b', freeBytes: 99 },
    ];
    expect(lacksRoom(rooms, 100)).toEqual({ folder: '/b', freeBytes: 99 });
    expect(lacksRoom(rooms, 99)).toBeUndefined();
    expect(lacksRoom([], 1)).toBeUndefined();
  });
});
