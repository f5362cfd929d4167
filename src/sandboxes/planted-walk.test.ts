import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type WalkLimits, walkForPlanted } from './planted-walk.ts';

const wide: WalkLimits = { entries: 1000, depth: 10, timeMs: 60_000 };

function tree(...files: readonly string[]): string {
  const root = mkdtempSync(join(tmpdir(), 'sallyport-walk-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const file of files) {
    mkdirSync(join(root, file, '..'), { recursive: true });
    writeFileSync(join(root, file), 'x');
  }
  return root;
}

const walk = async (root: string, limits: Partial<WalkLimits> = {}, held: readonly string[] = []) =>
  await walkForPlanted({ root, held: new Set(held), isRepository: false, limits: { ...wide, ...limits } });

describe('[N5] a walk through a live workspace', () => {
  it('says where it ended for a limit, and has no end to tell of without one', async () => {
    const root = tree('a/b/c/.envrc', 'd/1', 'd/2', 'd/3', 'e/.envrc');
    const whole = await walk(root);
    expect([...whole.sightings.keys()].sort()).toEqual(['a/b/c/.envrc', 'e/.envrc']);
    expect(whole.cut).toBeUndefined();
    expect((await walk(root, { entries: 3 })).cut).toBe('more than 3 files and folders');
    expect((await walk(root, { timeMs: -1 })).cut).toContain('it took more than');
    const shallow = await walk(root, { depth: 2 });
    expect(shallow.cut).toBe('folders deeper than 2 were not scanned');
    // The rest of the tree is seen all the same.
    expect([...shallow.sightings.keys()]).toEqual(['e/.envrc']);
  });

  it('gives a mark that changes with what a file or a folder holds, and with nothing else', async () => {
    const root = tree('sub/.vscode/tasks.json', 'repo/HEAD', 'repo/commondir', 'repo/hooks/pre-commit');
    const marks = async () =>
      Object.fromEntries([...(await walk(root)).sightings].map(([k, v]) => [k, v.mark]));
    const first = await marks();
    expect(await marks()).toEqual(first);
    writeFileSync(join(root, 'sub/other'), 'x');
    expect(await marks()).toEqual(first);
    writeFileSync(join(root, 'sub/.vscode/tasks.json'), 'longer');
    writeFileSync(join(root, 'repo/hooks/pre-commit'), 'longer');
    const then = await marks();
    expect(then['sub/.vscode']).not.toBe(first['sub/.vscode']);
    expect(then['repo']).not.toBe(first['repo']);
  });

  it('leaves out what is held', async () => {
    const root = tree('.envrc', 'node_modules/sallyport/.git/HEAD', 'x.code-workspace');
    expect([...(await walk(root, {}, ['.envrc', 'node_modules/sallyport'])).sightings.keys()]).toEqual([
      'x.code-workspace',
    ]);
  });
});
