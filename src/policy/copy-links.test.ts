import { describe, expect, it } from 'vitest';
import { linkText } from './copy-links.ts';

describe('[A5] a link in what is copied', () => {
  it.each([
    ['a', 'b', 'b'],
    ['a', './b', './b'],
    ['d/a', '../b', '../b'],
    ['a', 'a', 'a'],
    ['a', '.', '.'],
    ['d/e/a', '../../x/../b', '../../x/../b'],
    ['a', '/src/p/b', 'b'],
    ['d/a', '/src/p/b/c', '../b/c'],
    ['d/a', '/src/p/d', '.'],
    ['d/a', '/src/p', '..'],
    ['a', '/src/x/../p/b', 'b'],
    ['a', '../p/b', 'b'],
    ['d/a', '../../p/b', '../b'],
    ['a', '/src/p', '.'],
  ])('at %s to %s stays inside as %s', (path, target, expected) => {
    expect(linkText('/src/p', path, target)).toBe(expected);
  });

  it.each([
    ['a', '..'],
    ['a', '../x'],
    ['a', '../project'],
    ['d/a', '../../x'],
    ['a', '/etc/passwd'],
    ['a', '/src/project/b'],
    ['a', '/src/p/../x'],
    ['a', '/'],
  ])('at %s to %s leads out', (path, target) => {
    expect(linkText('/src/p', path, target)).toBeUndefined();
  });
});
