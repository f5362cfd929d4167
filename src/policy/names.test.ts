import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nameSchema } from '../protocol/spec.ts';
import { adjectives, nouns } from './name-words.ts';
import { randomName, sanitizedName, workspaceName } from './names.ts';

describe('names', () => {
  it('[G1] names a sandbox by its folder and the md5 of its path', () => {
    const hash = createHash('md5').update('/home/me/My Project').digest('hex').slice(0, 8);
    expect(workspaceName('/home/me/My Project')).toBe(`my-project-${hash}`);
    expect(workspaceName('/a/app')).not.toBe(workspaceName('/b/app'));
  });

  it.each([
    ['Größe & Über', 'große-uber'.replace('ß', '-')],
    ['.hidden', 'hidden'],
    ['a__b..c', 'a-b-c'],
    ['日本', 'box'],
    ['', 'box'],
    ['--', 'box'],
    ['x_', 'x'],
  ])('makes of %j the name %j', (text, name) => {
    expect(sanitizedName(text)).toBe(name);
  });

  it('[G1] makes a name that the schema accepts of any path and of any bytes', () => {
    const path = fc.string({ unit: 'binary', maxLength: 80 }).map((text) => `/${text}`);
    fc.assert(fc.property(path, (any) => nameSchema.safeParse(workspaceName(any)).success));
    const bytes = fc.uint8Array({ minLength: 4, maxLength: 4 });
    fc.assert(fc.property(bytes, (any) => nameSchema.safeParse(randomName(any)).success));
  });

  it('draws from 64 different words of each kind, evenly', () => {
    expect([new Set(adjectives).size, adjectives.length]).toEqual([64, 64]);
    expect([new Set(nouns).size, nouns.length]).toEqual([64, 64]);
    expect(randomName(Uint8Array.of(0, 65, 0, 7))).toBe(`${adjectives[0]}-${nouns[1]}-007`);
    expect(() => randomName(Uint8Array.of(1, 2, 3))).toThrow(RangeError);
  });
});
