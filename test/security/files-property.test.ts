/** Random trees into a real sandbox and out again: the same tree, or a typed refusal, and never anything outside of the target. */

import {
  chmod,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isSallyportError } from '../../src/protocol/errors.ts';
import { leavesTree } from '../../src/sdk/write-tree.ts';
import { newFolder } from '../support/cli.ts';
import { testDaemon } from '../support/daemon.ts';

type Node =
  | { readonly kind: 'file'; readonly content: Uint8Array; readonly mode: number }
  | { readonly kind: 'link'; readonly target: string }
  /** Another name of a file that was made before; of none if there is none. */
  | { readonly kind: 'hard'; readonly which: number }
  | { readonly kind: 'folder'; readonly mode: number; readonly names: ReadonlyMap<string, Node> };

const oddNames = [
  '-rf',
  '.hidden',
  ' ',
  'a b',
  'tab\t',
  'line\nbreak',
  '*',
  '$HOME',
  '"',
  "'",
  '\\',
  'ä',
  '日本',
  '...',
  '\u001b[31m',
  'x'.repeat(255),
];
const name = fc.oneof(fc.constantFrom('a', 'b', 'c', 'd'), fc.constantFrom(...oddNames));
const target = fc.oneof(
  fc.constantFrom(
    'a',
    'b/c',
    '../a',
    '../../b',
    './d',
    'nowhere',
    '..',
    '/etc/passwd',
    '../../../outside',
    'a/../..',
    '/proc/self/root',
  ),
  fc
    .array(fc.constantFrom('..', '.', 'a', 'b', ''), { minLength: 1, maxLength: 5 })
    .map((parts) => parts.join('/') || '.'),
);
const fileMode = fc.constantFrom(0o600, 0o644, 0o755, 0o400, 0o777, 0o4755, 0o2644);
const folderMode = fc.constantFrom(0o700, 0o755, 0o777, 0o500, 0o1777);
const { tree } = fc.letrec<{ tree: ReadonlyMap<string, Node>; node: Node }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4, depthSize: 'medium' },
    fc.record({
      kind: fc.constant('file' as const),
      content: fc.uint8Array({ maxLength: 300 }),
      mode: fileMode,
    }),
    fc.record({ kind: fc.constant('link' as const), target }),
    fc.record({ kind: fc.constant('hard' as const), which: fc.nat(5) }),
    fc.record({ kind: fc.constant('folder' as const), mode: folderMode, names: tie('tree') }),
  ),
  tree: fc.array(fc.tuple(name, tie('node')), { maxLength: 6 }).map((entries) => new Map(entries)),
}));

async function make(folder: string, names: ReadonlyMap<string, Node>, files: string[] = []): Promise<void> {
  for (const [entry, node] of names) {
    const at = join(folder, entry);
    if (node.kind === 'file') {
      await writeFile(at, node.content);
      await chmod(at, node.mode);
      files.push(at);
    } else if (node.kind === 'link') await symlink(node.target, at);
    else if (node.kind === 'hard') {
      const other = files[node.which % Math.max(1, files.length)];
      if (other !== undefined) await link(other, at);
    } else {
      await mkdir(at);
      await make(at, node.names, files);
      await chmod(at, node.mode);
    }
  }
}

/** So that anybody can remove it, not only root. */
async function openUp(folder: string): Promise<void> {
  await chmod(folder, 0o700);
  for (const entry of await readdir(folder, { withFileTypes: true }))
    if (entry.isDirectory()) await openUp(join(folder, entry.name));
}

/** Every path with what is there, as text that can be compared. */
async function look(folder: string, below = ''): Promise<Record<string, string>> {
  const seen: Record<string, string> = {};
  for (const entry of (await readdir(join(folder, below))).sort()) {
    const path = below === '' ? entry : `${below}/${entry}`;
    const facts = await lstat(join(folder, path));
    const mode = (facts.mode & 0o777).toString(8);
    if (facts.isSymbolicLink()) seen[path] = `link ${await readlink(join(folder, path))}`;
    else if (facts.isDirectory()) Object.assign(seen, { [path]: `folder ${mode}` }, await look(folder, path));
    else if (facts.isFile())
      seen[path] = `file ${mode} ${(await readFile(join(folder, path))).toString('base64')}`;
    else seen[path] = 'something else';
  }
  return seen;
}

/** Without what is left out of a copy, and named: links that lead out of it. */
const kept = (seen: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(seen).filter(
      ([path, what]) => !(what.startsWith('link ') && leavesTree(path, what.slice(5))),
    ),
  );

describe('any tree', () => {
  it('is the same after it went in and came out, or is refused, and nothing is outside of the target', async () => {
    const daemon = await testDaemon();
    const box = await daemon.make();
    const base = await newFolder('own');
    let [round, same, refused] = [0, 0, 0];
    await fc.assert(
      fc.asyncProperty(tree, async (names) => {
        const here = join(base, String(++round));
        const inside = `/tmp/${round}`;
        await mkdir(join(here, 'in'), { recursive: true });
        try {
          await make(join(here, 'in'), names);
          const before = await look(join(here, 'in'));
          try {
            await box.files.upload(join(here, 'in'), inside);
            const { skipped } = await box.files.download(inside, join(here, 'out'));
            const after = await look(join(here, 'out'));
            expect(after).toEqual(kept(before));
            const left = Object.keys(before).filter((path) => !(path in after));
            expect(skipped.map(({ path }) => path).sort()).toEqual(left.sort());
            same++;
          } catch (error) {
            if (!isSallyportError(error)) throw error;
            refused++;
          }
          expect(await look(join(here, 'in'))).toEqual(before);
          expect((await readdir(here)).filter((entry) => entry !== 'in' && entry !== 'out')).toEqual([]);
          expect(await readdir(base)).toEqual([String(round)]);
        } finally {
          await openUp(here);
          await rm(here, { recursive: true, force: true });
          await box.sh(`chmod -R u+rwx ${inside}; rm -rf ${inside}`);
        }
      }),
      { numRuns: 100 },
    );
    // A test in which everything is refused would prove nothing.
    expect(same).toBeGreaterThan(refused);
  }, 180_000);
});
