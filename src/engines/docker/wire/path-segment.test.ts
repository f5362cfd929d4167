import { describe, expect, it } from 'vitest';
import { imagePath, pathSegment } from './path-segment.ts';

describe('names in a request path', () => {
  it.each([
    ['web-1', 'web-1'],
    ['a/b', 'a%2Fb'],
    ['a?force=1', 'a%3Fforce%3D1'],
    ['a#b', 'a%23b'],
    ['ü ', '%C3%BC%20'],
    ['..', '-'],
    ['', '-'],
  ])('pathSegment writes %j as %j, which stays one name', (name, encoded) => {
    expect(pathSegment(name)).toBe(encoded);
  });

  it.each([
    ['debian:bookworm', 'debian%3Abookworm'],
    ['host:5000/a/b@sha256:00', 'host%3A5000/a/b%40sha256%3A00'],
    ['../containers/json', '-/containers/json'],
  ])('imagePath writes %j as %j', (reference, encoded) => {
    expect(imagePath(reference)).toBe(encoded);
  });
});
