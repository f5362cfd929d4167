import {
  chmodSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
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

const ordinary = 1234;

/** Root becomes one for the time of the call, and the tree is that user's. */
async function asOrdinaryUser<T>(root: string, act: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return await act();
  for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' }))
    lchownSync(join(root, name), ordinary, ordinary);
  lchownSync(root, ordinary, ordinary);
  process.seteuid?.(ordinary);
  try {
    return await act();
  } finally {
    process.seteuid?.(0);
  }
}

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

  it('reports a repository that its owner may not enter, or whose HEAD its owner may not read', async () => {
    const root = tree('.git/refs/x', '.git/objects/x');
    writeFileSync(join(root, '.git/HEAD'), 'ref: refs/heads/main\n');
    const own = async () => {
      const { sightings } = await walkForPlanted({ root, held: new Set(), isRepository: true, limits: wide });
      return [...sightings].map(([path, { kind }]) => `${path}: ${kind}`);
    };
    expect(await own()).toEqual([]);
    onTestFinished(() => chmodSync(join(root, '.git'), 0o755));
    for (const [path, mode, before] of [
      ['.git', 0o000, 0o755],
      ['.git', 0o400, 0o755],
      ['.git/HEAD', 0o000, 0o644],
      ['.git/refs', 0o600, 0o755],
    ] as const) {
      chmodSync(join(root, path), mode);
      expect(await own(), path).toEqual(['.git/HEAD: invalid HEAD']);
      chmodSync(join(root, path), before);
    }
    expect(await own()).toEqual([]);
  });

  it('takes for a head what git takes for one', async () => {
    const root = tree('.git/refs/x', '.git/objects/x');
    const kinds = async (head: string) => {
      writeFileSync(join(root, '.git/HEAD'), head, 'latin1');
      const { sightings } = await walkForPlanted({ root, held: new Set(), isRepository: true, limits: wide });
      return [...sightings.values()].map(({ kind }) => kind);
    };
    expect(await kinds('ref:\t refs/heads/main\n')).toEqual([]);
    expect(await kinds(`${'a1'.repeat(20)}\n`)).toEqual([]);
    for (const space of ['\v', '\f', '\xa0'])
      expect(await kinds(`ref:${space}refs/heads/main\n`)).toEqual(['invalid HEAD']);
  });

  it('finds git directories elsewhere in the repository, and not in what git keeps there', async () => {
    const bare = (at: string) => [`${at}/HEAD`, `${at}/objects/x`, `${at}/refs/x`];
    const root = tree('.git/refs/x', '.git/objects/x', ...bare('.git/x/y'), ...bare('.git/logs/z'));
    writeFileSync(join(root, '.git/HEAD'), 'ref: refs/heads/main\n');
    const { sightings } = await walkForPlanted({ root, held: new Set(), isRepository: true, limits: wide });
    expect([...sightings.keys()]).toEqual(['.git/x/y']);
  });

  it('finds names in the other forms that file systems take for them', async () => {
    const bare = (at: string) => [`${at}/HEAD`, `${at}/objects/x`, `${at}/refs/x`];
    const root = tree(
      ...bare('.git'),
      ...bare('GIT~1'),
      ...bare('.git.'),
      ...['pointer/GIT~1', 'pointer/.git.', 'pointer/LEGIT~1'],
      ...['.vscode /tasks.json', 'sub/VSCODE~1/tasks.json', 'MCP~1.JSO', 'sub/.Envrc. .'],
      ...['LEGIT~1/tasks.json', 'sub/LEGIT~1', 'x~1.txt', 'MCP~1.TXT'],
    );
    writeFileSync(join(root, '.git/HEAD'), 'ref: refs/heads/main\n');
    const { sightings } = await walkForPlanted({ root, held: new Set(), isRepository: true, limits: wide });
    expect(Object.fromEntries([...sightings].map(([path, { kind }]) => [path, kind]))).toEqual({
      'GIT~1': 'git directory',
      '.git.': 'git directory',
      'pointer/GIT~1': 'git pointer',
      'pointer/.git.': 'git pointer',
      '.vscode ': 'name',
      'sub/VSCODE~1': 'name',
      'MCP~1.JSO': 'name',
      'sub/.Envrc. .': 'name',
    });
  });

  it('finds manifests that take the name of the program, but not among installed packages', async () => {
    const root = tree('package.json', 'other/package.json');
    expect((await walk(root)).sightings.size).toBe(0);
    for (const folder of ['.', 'packages/a', 'node_modules/x']) {
      mkdirSync(join(root, folder), { recursive: true });
      writeFileSync(join(root, folder, 'package.json'), '{"bin":{"sally":"./evil.js"}}');
    }
    symlinkSync('../packages/a/package.json', join(root, 'other/link'));
    renameSync(join(root, 'other/link'), join(root, 'other/package.json'));
    expect([...(await walk(root)).sightings].map(([path, { kind }]) => `${path}: ${kind}`).sort()).toEqual([
      'other/package.json: npx program',
      'package.json: npx program',
      'packages/a/package.json: npx program',
    ]);
  });

  it('reports a folder that git may pass through and that its owner may not list', async () => {
    const root = tree('open/.git/HEAD', 'closed/lib/.git/HEAD', 'none/file');
    chmodSync(join(root, 'closed'), 0o311);
    chmodSync(join(root, 'none'), 0o000);
    onTestFinished(() => {
      for (const name of ['closed', 'none']) chmodSync(join(root, name), 0o755);
    });
    chmodSync(root, 0o755);
    // Root may list every folder, so the walk is that of an ordinary user.
    const { sightings, cut } = await asOrdinaryUser(root, () => walk(root));
    expect([...sightings].map(([path, { kind }]) => `${path}: ${kind}`)).toEqual(['closed: closed folder']);
    expect(cut).toContain('may not list');
  });

  it('finds operations where the repository of a worktree keeps them', async () => {
    const root = tree('file');
    const worktreeDir = tree('HEAD', 'rebase-merge/git-rebase-todo', 'sequencer/todo', 'logs/HEAD');
    const found = async (more: { worktreeDir?: string }) =>
      (await walkForPlanted({ root, held: new Set(), isRepository: false, limits: wide, ...more })).sightings;
    expect([...(await found({})).keys()]).toEqual([]);
    expect([...(await found({ worktreeDir })).keys()].sort()).toEqual([
      `${worktreeDir}/rebase-merge`,
      `${worktreeDir}/sequencer`,
    ]);
    expect([...(await found({ worktreeDir: `${worktreeDir}/gone` })).keys()]).toEqual([]);
  });

  it('looks at what is held where other spellings of it are not', async () => {
    const root = tree('.vscode/tasks.json', '.git/config', '.git/refs/x', '.git/objects/x', 'file');
    mkdirSync(join(root, '.idea'));
    writeFileSync(join(root, '.git/HEAD'), 'ref: refs/heads/main\n');
    const held = new Set(['.vscode', '.idea', '.git/config']);
    const found = async (foldsCase: boolean) =>
      (await walkForPlanted({ root, held, isRepository: true, foldsCase, limits: wide })).sightings;
    expect([...(await found(false)).keys()]).toEqual([]);
    const before = await found(true);
    // The empty one is a placeholder.
    expect([...before.keys()].sort()).toEqual(['.git', '.vscode']);
    writeFileSync(join(root, '.git/config'), 'longer');
    expect((await found(true)).get('.git')?.mark).not.toBe(before.get('.git')?.mark);
  });

  it('leaves out what is held', async () => {
    const root = tree('.envrc', 'node_modules/sallyport/.git/HEAD', 'x.code-workspace');
    expect([...(await walk(root, {}, ['.envrc', 'node_modules/sallyport'])).sightings.keys()]).toEqual([
      'x.code-workspace',
    ]);
  });
});
