import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { commandExists, requirement } from '../../test/support/requires.ts';
import { filePatch, mostPatchLines, type PatchSide, quoted } from './git-patch.ts';

type Tree = ReadonlyMap<string, PatchSide>;

const slash = Buffer.from('/');
/** Names are latin1 here, one character a byte. */
const at = (folder: string, name: string): Buffer =>
  Buffer.concat([Buffer.from(folder), slash, Buffer.from(name, 'latin1')]);

function write(folder: string, tree: Tree): void {
  for (const [name, { mode, content }] of tree) {
    const path = at(folder, name);
    if (mode === '120000') symlinkSync(content ?? '', path);
    else {
      writeFileSync(path, content ?? '');
      chmodSync(path, mode === '100755' ? 0o755 : 0o644);
    }
  }
}

function read(folder: string): Tree {
  const tree = new Map<string, PatchSide>();
  for (const name of readdirSync(folder, { encoding: 'buffer' })) {
    const path = Buffer.concat([Buffer.from(folder), slash, name]);
    const facts = lstatSync(path);
    if (facts.isSymbolicLink())
      tree.set(name.toString('latin1'), {
        mode: '120000',
        content: readlinkSync(path, { encoding: 'buffer' }),
      });
    else
      tree.set(name.toString('latin1'), {
        mode: (facts.mode & 0o100) === 0 ? '100644' : '100755',
        content: readFileSync(path),
      });
  }
  return tree;
}

const sorted = (tree: Tree): unknown => [...tree].sort(([a], [b]) => (a < b ? -1 : 1));

const text = fc
  .array(
    fc.constantFrom(
      'a',
      'bb',
      '',
      '\r',
      '-- x',
      '+++ y',
      '@@ -1 +1 @@',
      '\\ No newline',
      '\u00ff',
      'diff --git a/x b/x',
    ),
    { maxLength: 20 },
  )
  .chain((lines) => fc.constantFrom('', '\n').map((end) => Buffer.from(lines.join('\n') + end, 'latin1')));
const binary = fc
  .uint8Array({ maxLength: 300 })
  .map((bytes) => Buffer.concat([Buffer.from(bytes), Buffer.from([0])]));
const side: fc.Arbitrary<PatchSide> = fc.oneof(
  fc.record({ mode: fc.constantFrom('100644' as const, '100755' as const), content: fc.oneof(text, binary) }),
  fc.record({
    mode: fc.constant('120000' as const),
    content: fc.constantFrom('x', '../y', 'a b\n').map((to) => Buffer.from(to)),
  }),
);
const name = fc.constantFrom(
  'plain',
  'with space',
  ' lead',
  'trail ',
  'quo"te',
  'back\\slash',
  'new\nline',
  'tab\t',
  '\u00ff\u00fe',
  '\u00c3\u00a9',
  'esc\u001b[31m',
  '-dash',
);
const tree: fc.Arbitrary<Tree> = fc
  .uniqueArray(fc.tuple(name, side), { maxLength: 8, selector: ([each]) => each })
  .map((entries) => new Map(entries));

describe.runIf(requirement('git', commandExists('git')))('a patch', () => {
  it('makes the new tree of the old one when git applies it', { timeout: 60_000 }, async () => {
    const root = temporaryFolder();
    await fc.assert(
      fc.asyncProperty(tree, tree, async (before, after) => {
        const folder = join(root, 'tree');
        mkdirSync(folder);
        try {
          write(folder, before);
          const names = [...new Set([...before.keys(), ...after.keys()])].sort();
          const patches: Buffer[] = [];
          for (const each of names.filter((one) => !same(before.get(one), after.get(one))))
            patches.push(
              (await filePatch(Buffer.from(each, 'latin1'), before.get(each), after.get(each))).bytes,
            );
          const patch = Buffer.concat(patches);
          if (patch.length > 0)
            execFileSync('git', ['apply', '--whitespace=nowarn', '-'], {
              cwd: folder,
              input: patch,
              env: { GIT_CEILING_DIRECTORIES: root, PATH: process.env['PATH'] },
            });
          expect(sorted(read(folder))).toEqual(sorted(after));
        } finally {
          rmSync(folder, { recursive: true, force: true });
        }
      }),
      { numRuns: 150 },
    );
  });
});

const same = (a: PatchSide | undefined, b: PatchSide | undefined): boolean =>
  a !== undefined &&
  b !== undefined &&
  a.mode === b.mode &&
  (a.content ?? '').toString('latin1') === (b.content ?? '').toString('latin1');

describe('a name in a patch', () => {
  it('is in quotes, with codes, where it has anything that a terminal or a parser obeys', () => {
    expect(quoted('a/', Buffer.from('plain file'))).toBe('a/plain file');
    expect(quoted('a/', Buffer.from('a\u001b[31m"\n\u00e9'))).toBe('"a/a\\033[31m\\"\\n\\303\\251"');
  });

  it('stands before a word instead of hunks where the content is not known', async () => {
    const { bytes, isWhole } = await filePatch(
      Buffer.from('big'),
      { mode: '100644', content: undefined },
      { mode: '100644', content: Buffer.from('x') },
    );
    expect(bytes.toString()).toBe('diff --git a/big b/big\nBinary files a/big and b/big differ\n');
    expect(isWhole).toBe(false);
  });

  it('[N5] stands before the same word where there are more lines than are compared', async () => {
    const added = async (lines: number) =>
      await filePatch(Buffer.from('many'), undefined, {
        mode: '100644',
        content: Buffer.alloc(lines, '\n'),
      });
    expect(await added(mostPatchLines)).toMatchObject({ added: mostPatchLines, isWhole: true });
    const { bytes, ...rest } = await added(mostPatchLines + 1);
    expect(bytes.toString()).toBe(
      'diff --git a/many b/many\nnew file mode 100644\nBinary files /dev/null and b/many differ\n',
    );
    expect(rest).toMatchObject({ added: 0, isWhole: false });
  });
});
