import {
  chmodSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { requireCopyable } from './copy-in.ts';

/** `tree`, which is to be copied, and `outside` beside it. */
function world(files: readonly string[] = []): string {
  const folder = realpathSync(temporaryFolder());
  for (const file of ['tree/file', 'outside/file', ...files]) {
    mkdirSync(join(folder, dirname(file)), { recursive: true });
    writeFileSync(join(folder, file), '');
  }
  return folder;
}

/** Undefined: it may be copied. */
async function refusal(folder: string, patterns: readonly string[] = []): Promise<unknown> {
  const copy = {
    source: join(folder, 'tree'),
    target: '/data',
    kind: 'directory' as const,
    excludes: { patterns: [...patterns], from: [] },
    isWorkspace: false,
  };
  return await requireCopyable(copy).catch((error: unknown) => error);
}

const refused = (rule: string, path: string, target: string) => ({
  code: 'refused_by_policy',
  message: expect.stringContaining(target),
  details: { field: 'copies', path, target, rule },
  advice: expect.stringContaining('exclude_patterns'),
});

const ordinary = 1234;

/** Root becomes one for the time of the call, and the folder is that user's. */
async function asOrdinaryUser<T>(folder: string, act: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return await act();
  for (const name of ['', ...readdirSync(folder, { recursive: true, encoding: 'utf8' })])
    lchownSync(join(folder, name), ordinary, ordinary);
  process.seteuid?.(ordinary);
  try {
    return await act();
  } finally {
    process.seteuid?.(0);
  }
}

describe('[A5] a link of a copied tree whose target lies inside', () => {
  it.each([
    ['file', 'to a file'],
    ['sub', 'to a folder'],
    ['.', 'to the tree itself'],
    ['nowhere', 'that does not exist'],
    ['none/of/this', 'below a folder that does not exist'],
    ['file/below', 'below a file'],
    ['a'.repeat(300), 'by a name that no file can have'],
    ['link', 'in a circle'],
    ['other', 'to a link that leads nowhere'],
    ['other/x', 'below a link that leads nowhere'],
  ])('is kept: %.20s, %s', async (target) => {
    const folder = world(['tree/sub/x']);
    symlinkSync('nowhere', join(folder, 'tree/other'));
    symlinkSync(target, join(folder, 'tree/link'));
    expect(await refusal(folder)).toBeUndefined();
  });

  it.each([
    ['nowhere', 'that does not exist'],
    ['sub/none/x', 'in a folder that does not exist'],
    ['file', 'that exists'],
  ])('is kept where an absolute path names the tree by another way: %s, %s', async (below) => {
    const folder = world(['tree/sub/x']);
    symlinkSync('tree', join(folder, 'alias'));
    symlinkSync(join(folder, 'alias', below), join(folder, 'tree/link'));
    expect(await refusal(folder)).toBeUndefined();
  });

  it('is refused if the user may not read it, also where the target itself is left out', async () => {
    const folder = world(['tree/secret', 'tree/closed/file']);
    chmodSync(join(folder, 'tree/secret'), 0o000);
    chmodSync(join(folder, 'tree/closed'), 0o000);
    const leftOut = ['/secret', '/closed'];
    // An ordinary user could not remove the folder at the end of the test.
    onTestFinished(() => chmodSync(join(folder, 'tree/closed'), 0o700));
    await asOrdinaryUser(folder, async () => {
      expect(await refusal(folder, leftOut)).toBeUndefined();
      for (const target of ['secret', 'closed', 'closed/file']) {
        symlinkSync(target, join(folder, 'tree/link'));
        expect(await refusal(folder, leftOut)).toMatchObject(refused('unreadable-link', 'link', target));
        expect(await refusal(folder, [...leftOut, '/link'])).toBeUndefined();
        rmSync(join(folder, 'tree/link'));
      }
    });
  });
});

describe('[A5] a link of a copied tree whose target lies outside', () => {
  it.each([
    ['../outside/file', 'to a file'],
    ['../outside', 'to a folder'],
    ['..', 'to the folder above'],
    ['../nowhere', 'that does not exist'],
    ['none/../../nowhere', 'that does not exist, through a folder that does not exist'],
    ['/nowhere/at/all', 'that does not exist, by an absolute path'],
    ['/etc/passwd', 'to a file of the system'],
  ])('is refused: %s, %s', async (target) => {
    const folder = world();
    symlinkSync(target, join(folder, 'tree/link'));
    expect(await refusal(folder)).toMatchObject(refused('external-link', 'link', target));
    expect(await refusal(folder, ['/link'])).toBeUndefined();
  });

  it.each([
    ['alias/nowhere', 'by a link that leads to no part of the tree'],
    ['inside/none/../../nowhere', 'by a folder that does not exist and what is above it'],
    ['dangling/file', 'by a link that leads nowhere'],
  ])('is refused: %s, %s', async (below) => {
    const folder = world();
    symlinkSync('outside', join(folder, 'alias'));
    symlinkSync('tree', join(folder, 'inside'));
    symlinkSync('tree/nowhere', join(folder, 'dangling'));
    const target = `${folder}/${below}`;
    symlinkSync(target, join(folder, 'tree/link'));
    expect(await refusal(folder)).toMatchObject(refused('external-link', 'link', target));
  });

  it('is not followed by one that leads through it: it is judged itself, or left out', async () => {
    const folder = world();
    symlinkSync('../outside', join(folder, 'tree/out'));
    symlinkSync('out/file', join(folder, 'tree/link'));
    expect(await refusal(folder)).toMatchObject(refused('external-link', 'out', '../outside'));
    expect(await refusal(folder, ['/out'])).toBeUndefined();
  });
});
