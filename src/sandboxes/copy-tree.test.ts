import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { isSallyportError } from '../protocol/errors.ts';
import { CopyTree, withSingleFile } from './copy-tree.ts';

/** Puts a link in the place of a folder and back again, until its input ends. */
const swapper = `
const { renameSync } = require('node:fs');
const [root] = process.argv.slice(1);
process.chdir(root);
let over = false;
process.stdin.on('end', () => { over = true; }).resume();
process.stdout.write('begun');
(function swap() {
  for (let i = 0; i < 200; i++) {
    renameSync('tree/dir', 'kept'); renameSync('link', 'tree/dir');
    renameSync('tree/dir', 'link'); renameSync('kept', 'tree/dir');
  }
  if (!over) setImmediate(swap);
})();
`;

async function contents(root: string): Promise<readonly string[]> {
  const read: string[] = [];
  for await (const entry of new CopyTree(root, { patterns: [], from: [] }).entries()) {
    if (entry.kind !== 'file') continue;
    for await (const chunk of entry.chunks()) read.push(chunk.toString('utf8'));
  }
  return read;
}

describe('a tree that is copied in', () => {
  it('never has what is outside of it, whoever swaps its folders meanwhile', async () => {
    const folder = temporaryFolder();
    const tree = join(folder, 'tree');
    const outside = join(folder, 'outside');
    for (const path of [tree, outside, join(tree, 'dir')]) mkdirSync(path);
    for (let number = 0; number < 20; number++) {
      writeFileSync(join(tree, 'dir', `file${number}`), 'inside');
      writeFileSync(join(outside, `file${number}`), 'outside');
    }
    symlinkSync(outside, join(folder, 'link'));
    expect(new Set(await contents(tree))).toEqual(new Set(['inside']));
    const child = spawn(process.execPath, ['-e', swapper, folder], { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    let ledAway = 0;
    let whole = 0;
    try {
      for (let round = 0; round < 400 || ledAway === 0 || whole === 0; round++) {
        // The control: who goes by path is led away by the same swap.
        try {
          if (readFileSync(join(tree, 'dir/file0'), 'utf8') === 'outside') ledAway++;
        } catch {
          // Neither of them is there for a moment.
        }
        const read = await contents(tree).catch((error: unknown) => {
          expect(isSallyportError(error, 'copy_changed'), String(error)).toBe(true);
          return [];
        });
        expect(read).not.toContain('outside');
        if (read.length === 20) whole++;
      }
    } finally {
      child.stdin.end();
      await once(child, 'exit');
    }
  });
});

describe('what is copied in', () => {
  it('is reached by no link, and stays what was reached when a folder above it is swapped', async () => {
    const folder = temporaryFolder();
    const at = (path: string): string => join(folder, path);
    for (const [name, content] of [
      ['dir', 'inside'],
      ['outside', 'outside'],
    ] as const) {
      mkdirSync(at(name));
      writeFileSync(at(`${name}/file`), content);
    }
    symlinkSync(at('outside'), at('link'));
    const refused = { code: 'copy_changed' };
    await expect(withSingleFile(at('link/file'), async () => {})).rejects.toMatchObject(refused);
    await expect(contents(at('link'))).rejects.toMatchObject(refused);
    let read = '';
    await withSingleFile(at('dir/file'), async (entry) => {
      renameSync(at('dir'), at('away'));
      renameSync(at('link'), at('dir'));
      // The control: by its path it is the other one by now.
      expect(readFileSync(at('dir/file'), 'utf8')).toBe('outside');
      for await (const chunk of entry.chunks()) read += chunk.toString('utf8');
    });
    expect(read).toBe('inside');
  });
});
