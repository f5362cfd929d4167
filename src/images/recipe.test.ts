import { describe, expect, it } from 'vitest';
import { hashInputs, parsePackages, readRecipe } from './recipe.ts';

const file = (name: string, text: string) => ({ name, content: Buffer.from(text) });

describe('the hash of an image', () => {
  it('is the same for the same inputs, in whatever order they are listed', () => {
    const files = [file('a', '1'), file('b', '2')];
    expect(hashInputs({ suite: 's', variant: 'v' }, files)).toBe(
      hashInputs({ variant: 'v', suite: 's' }, [...files].reverse()),
    );
  });

  it('[R2] changes with a file, its name, and every fact', () => {
    const facts = { suite: 's' };
    const hashes = [
      hashInputs(facts, [file('a', '1')]),
      hashInputs(facts, [file('a', '2')]),
      hashInputs(facts, [file('b', '1')]),
      hashInputs({ suite: 't' }, [file('a', '1')]),
      hashInputs(facts, []),
    ];
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  it('[R2] differs by architecture and by the image built on', async () => {
    const inputs = await Promise.all([
      readRecipe('base', 'amd64'),
      readRecipe('base', 'arm64'),
      readRecipe('base', 'amd64', 'debian:other'),
      readRecipe('test', 'amd64'),
    ]);
    expect(new Set(inputs.map((recipe) => recipe.inputs)).size).toBe(4);
    expect(inputs.map((recipe) => recipe.isDefault)).toEqual([true, true, false, true]);
  });
});

describe('packages.txt', () => {
  it('is one name a line, without comments', () => {
    expect(parsePackages('# why\n\nbash\n git \n')).toEqual(['bash', 'git']);
  });

  it('of every kind is sorted and names nothing twice', async () => {
    for (const kind of ['base', 'test'] as const) {
      const { packages } = await readRecipe(kind, 'amd64');
      expect(packages).toEqual([...new Set(packages)].sort());
    }
  });
});
