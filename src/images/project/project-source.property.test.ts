import {
  chmodSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  type Stats,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { fingerprint, type ImageInput } from '../inputs.ts';
import type { CachedDigest } from '../ports.ts';
import { type ContextEntry, walkContext } from './build-context.ts';
import { readProjectSource } from './project-source.ts';

const home = mkdtempSync(join(tmpdir(), 'sallyport-source-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

interface Made {
  readonly text: string;
  readonly executable: boolean;
}
type Tree = Readonly<Record<string, Made | { readonly link: string }>>;

let count = 0;
/** In a folder of its own, written in this order, all with this time. */
function write(
  tree: Tree,
  order: readonly string[],
  seconds: number,
  dockerfile = 'FROM a\nCOPY . /\n',
): string {
  const folder = join(home, `tree-${count++}`);
  mkdirSync(folder);
  for (const path of order) {
    const made = tree[path];
    if (made === undefined) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    if ('link' in made) symlinkSync(made.link, join(folder, path));
    else {
      writeFileSync(join(folder, path), made.text);
      chmodSync(join(folder, path), made.executable ? 0o755 : 0o600);
    }
    lutimesSync(join(folder, path), seconds, seconds);
  }
  writeFileSync(join(folder, 'Dockerfile.sallyport'), dockerfile);
  return folder;
}

class Digests {
  readonly kept = new Map<string, Map<string, CachedDigest>>();
  loadDigests = (folder: string): Map<string, CachedDigest> => this.kept.get(folder) ?? new Map();
  saveDigests = (folder: string, digests: ReadonlyMap<string, CachedDigest>): void => {
    this.kept.set(folder, new Map(digests));
  };
}

async function printOf(
  folder: string,
  args: Record<string, string> = {},
  digests = new Digests(),
): Promise<string> {
  const source = await readProjectSource({ folder, args }, digests);
  return fingerprint(source?.inputs ?? []);
}

/** With each file read once and kept: one that was written a moment ago is not. */
async function settled(folder: string): Promise<Digests> {
  const digests = new Digests();
  await vi.waitFor(
    async () => {
      await printOf(folder, {}, digests);
      expect([...(digests.kept.get(folder)?.keys() ?? [])].length).toBeGreaterThan(1);
    },
    { timeout: 5_000 },
  );
  return digests;
}

const name = fc.constantFrom('a', 'b', 'c.txt', 'über', 'x y');
const path = fc.oneof(
  name,
  fc.tuple(fc.constantFrom('d1', 'd2'), name).map((parts) => parts.join('/')),
);
const made = fc.oneof(
  fc.record({ text: fc.string({ maxLength: 20 }), executable: fc.boolean() }),
  fc.record({ link: fc.constantFrom('a', '/etc/passwd', '../x') }),
);
const trees: fc.Arbitrary<Tree> = fc.dictionary(path, made, {
  minKeys: 1,
  maxKeys: 6,
  noNullPrototype: true,
});

describe('the hash of a project', () => {
  it('[R2] is the same whatever the folder, the order, the times and what was read before', async () => {
    await fc.assert(
      fc.asyncProperty(
        trees,
        fc.integer({ min: 1, max: 2 ** 31 }),
        fc.boolean(),
        async (tree, seconds, back) => {
          const names = Object.keys(tree);
          const one = write(tree, names, 1_000_000);
          const other = write(tree, back ? names.toReversed() : names, seconds);
          const digests = new Digests();
          const first = await printOf(one, {}, digests);
          expect(await printOf(other)).toBe(first);
          expect(await printOf(one, {}, digests)).toBe(first);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('[R2] is another for each thing that changes in it', async () => {
    await fc.assert(
      fc.asyncProperty(trees, fc.nat(), async (tree, chosen) => {
        const names = Object.keys(tree);
        const target = names[chosen % names.length] ?? '';
        const found = tree[target];
        const before = await printOf(write(tree, names, 1_000_000));
        const changes: Tree[] =
          found === undefined || 'link' in found
            ? [
                { ...tree, [target]: { link: 'elsewhere' } },
                { ...tree, [target]: { text: 'x', executable: false } },
              ]
            : [
                { ...tree, [target]: { ...found, text: `${found.text}!` } },
                { ...tree, [target]: { ...found, executable: !found.executable } },
                { ...tree, [`${target}2`]: found },
                Object.fromEntries(Object.entries(tree).filter(([each]) => each !== target)),
              ];
        for (const changed of changes)
          expect(await printOf(write(changed, Object.keys(changed), 1_000_000))).not.toBe(before);
      }),
      { numRuns: 40 },
    );
  });

  it('[R2] covers the Dockerfile and the arguments', async () => {
    const folder = write({ a: { text: 'a', executable: false } }, ['a'], 1);
    const before = await printOf(folder, { V: '1' });
    expect(await printOf(folder, { V: '1' })).toBe(before);
    expect(await printOf(folder, { V: '2' })).not.toBe(before);
    expect(await printOf(folder, { W: '1' })).not.toBe(before);
    writeFileSync(join(folder, 'Dockerfile.sallyport'), 'FROM a\nCOPY . /\n#\n');
    expect(await printOf(folder, { V: '1' })).not.toBe(before);
  });

  it('[R2] does not depend on what .dockerignore leaves out, nor on files that nothing copies', async () => {
    const tree = {
      '.dockerignore': { text: 'out\n*.log\n!keep.log\n', executable: false },
      'keep.log': { text: 'kept', executable: false },
      a: { text: 'a', executable: false },
    };
    const folder = write(tree, Object.keys(tree), 1);
    const before = await printOf(folder);
    writeFileSync(join(folder, 'noise.log'), 'more');
    mkdirSync(join(folder, 'out'));
    writeFileSync(join(folder, 'out', 'x'), 'more');
    expect(await printOf(folder)).toBe(before);
    writeFileSync(join(folder, 'keep.log'), 'other');
    expect(await printOf(folder)).not.toBe(before);

    const plain = write({}, [], 1, 'FROM a\nRUN true\n');
    const alone = await printOf(plain);
    writeFileSync(join(plain, 'new'), 'file');
    expect(await printOf(plain)).toBe(alone);
  });

  it('[R2] takes no digest from its cache for a file that was written a moment before it was read', async () => {
    const folder = write({ a: { text: 'one', executable: false } }, ['a'], 1);
    const digests = new Digests();
    await printOf(folder, {}, digests);
    expect([...(digests.kept.get(folder)?.keys() ?? [])]).not.toContain('a');
  });

  it('[R2] sees an edit that leaves name, size and time as they were', async () => {
    const folder = write({ a: { text: 'one', executable: false } }, ['a'], 1_000_000);
    const digests = await settled(folder);
    const before = await printOf(folder, {}, digests);
    writeFileSync(join(folder, 'a'), 'two');
    utimesSync(join(folder, 'a'), 1_000_000, 1_000_000);
    expect(await printOf(folder, {}, digests)).not.toBe(before);
  });

  it('[R2] does not follow a folder that is swapped for a link while it is read', async () => {
    const file = (text: string) => ({ text, executable: false });
    const folder = write({ 'd/a': file('own'), 'd/b': file('own') }, ['d/a', 'd/b'], 1_000_000);
    const other = write({ b: file('foreign, and longer') }, ['b'], 1_000_000);
    const sizes = new Map<string, number>();
    const foreign: string[] = [];
    const visit = ({ path, sizeBytes }: ContextEntry): undefined => void sizes.set(path, sizeBytes);
    const isKnown = (path: string, facts: Stats): boolean => {
      if (path === 'd/a') {
        renameSync(join(folder, 'd'), join(home, `moved-${count}`));
        symlinkSync(other, join(folder, 'd'));
      }
      if (facts.size > 'own'.length && path === 'd/b') foreign.push(path);
      return false;
    };
    await walkContext(folder, [], { visit, isKnown });
    // The name led elsewhere, and nothing was taken from there.
    expect(foreign).toEqual(['d/b']);
    expect(sizes.get('d/b')).toBe('own'.length);
  });

  it('[R2] is made of names that cannot run into each other', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ name: fc.string(), digest: fc.string() }), { maxLength: 4 }),
        fc.func(fc.nat()),
        (inputs: ImageInput[], rank) => {
          const unique = [...new Map(inputs.map((input) => [input.name, input])).values()];
          const shuffled = unique.toSorted((a, b) => rank(a.name) - rank(b.name));
          expect(fingerprint(shuffled)).toBe(fingerprint(unique));
          for (const [index, input] of unique.entries()) {
            const other = unique.with(index, { ...input, digest: `${input.digest}x` });
            expect(fingerprint(other)).not.toBe(fingerprint(unique));
          }
        },
      ),
    );
  });
});
