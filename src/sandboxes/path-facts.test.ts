import { chown, lchown, mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { isRoot } from '../../test/support/requires.ts';
import { asRoot, when } from '../../test/support/selection.ts';
import { pathFacts } from './path-facts.ts';

/** By somebody who is not root, as every program in a sandbox is. */
async function link(target: string, path: string): Promise<void> {
  await symlink(target, path);
  if (isRoot) await lchown(path, 1234, 1234);
}

async function places(): Promise<{ readonly root: string; readonly given: string }> {
  const root = temporaryFolder();
  for (const folder of ['data/seed', 'other/seed']) await mkdir(join(root, folder), { recursive: true });
  if (isRoot) await chown(root, 1234, 1234);
  return { root, given: join(root, 'data/seed') };
}

describe('[N5] what a path of the host leads to', () => {
  it('names the first link on the way that somebody else than root made', async () => {
    const { root, given } = await places();
    expect(await pathFacts('f', given)).toMatchObject({
      kind: 'directory',
      real: given,
      realKind: 'directory',
    });
    expect(await pathFacts('f', given)).not.toHaveProperty('link');
    await rename(join(root, 'data'), join(root, 'aside'));
    await link('more/../other', join(root, 'data'));
    await mkdir(join(root, 'more'));
    expect(await pathFacts('f', given)).toMatchObject({
      kind: 'directory',
      real: join(root, 'other/seed'),
      link: join(root, 'data'),
    });
    // The last part too.
    await link(join(root, 'other'), join(root, 'end'));
    expect(await pathFacts('f', join(root, 'end'))).toMatchObject({
      kind: 'symlink',
      real: join(root, 'other'),
      realKind: 'directory',
      link: join(root, 'end'),
    });
  });

  when(asRoot).it('follows links of root, which no sandbox can make', async () => {
    const { root, given } = await places();
    await rename(join(root, 'data'), join(root, 'aside'));
    await symlink(join(root, 'other'), join(root, 'data'));
    const facts = await pathFacts('f', given);
    expect(facts).toMatchObject({ real: join(root, 'other/seed'), realKind: 'directory' });
    expect(facts).not.toHaveProperty('link');
  });

  it('is missing where nothing is, where links go round, and below a file', async () => {
    const { root } = await places();
    await link('round', join(root, 'round'));
    await writeFile(join(root, 'file'), '');
    for (const path of ['nothing', 'nothing/below', 'round/x', 'file/x']) {
      expect(await pathFacts('f', join(root, path)), path).toMatchObject({
        kind: 'missing',
        realKind: 'missing',
      });
    }
    expect(await pathFacts('f', join(root, 'round'))).toMatchObject({ kind: 'symlink', realKind: 'missing' });
    expect(await pathFacts('f', '/')).toMatchObject({ real: '/', realKind: 'directory' });
  });

  it('is never a place that no look has seen, while a program swaps a folder for a link', async () => {
    const { root, given } = await places();
    await link('other', join(root, 'elsewhere'));
    let goes = true;
    const swapping = (async () => {
      while (goes) {
        await rename(join(root, 'data'), join(root, 'aside'));
        await rename(join(root, 'elsewhere'), join(root, 'data'));
        await rename(join(root, 'data'), join(root, 'elsewhere'));
        await rename(join(root, 'aside'), join(root, 'data'));
      }
    })();
    const seen = new Set<string>();
    try {
      for (let turn = 0; turn < 1000 || seen.size < 2; turn++) {
        const { real, realKind, link: by } = await pathFacts('f', given);
        if (realKind === 'missing') continue;
        expect(by === undefined).toBe(real === given);
        seen.add(real);
      }
    } finally {
      goes = false;
      await swapping;
    }
    expect([...seen].sort()).toEqual([given, join(root, 'other/seed')]);
  });
});
