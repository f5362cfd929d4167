import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmod,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { asRoot, when } from '../../test/support/selection.ts';
import { ContentHash, type Hole, isHole, type Piece } from '../lib/content-hash.ts';
import { applyChanges } from './apply-changes.ts';
import { stagingPrefix } from './staging-folder.ts';
import type { ChangeCalls, WorkspaceChange } from './workspace-changes.ts';

async function folders(): Promise<{ readonly root: string; readonly outside: string }> {
  const base = await mkdtemp(join(tmpdir(), 'sally-apply-'));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const [root, outside] = [join(base, 'root'), join(base, 'outside')];
  await Promise.all([mkdir(root), mkdir(outside)]);
  return { root, outside };
}

const added = (path: string, text: string): WorkspaceChange => ({
  path,
  pathBytes: Buffer.from(path),
  change: 'added',
  after: {
    kind: 'file',
    mode: 0o644,
    size: text.length,
    sha256: createHash('sha256').update(text).digest('hex'),
  },
});

/** `meanwhile` is called before each file: what somebody does who may write to the folder. */
function changesOf(
  root: string,
  texts: Readonly<Record<string, string>>,
  meanwhile: (index: number) => Promise<void> = async () => {},
): ChangeCalls {
  const changes = Object.entries(texts).map(([path, text]) => added(path, text));
  const calls: Pick<ChangeCalls, 'list' | 'contents' | 'broughtBack'> = {
    list: async () => ({ source: root, target: '/workspace', changes }),
    contents: async function* (_target, wanted) {
      for (const [index, change] of wanted.entries()) {
        await meanwhile(index);
        yield { change, chunks: [Buffer.from(texts[change.path] ?? '')] };
      }
      await meanwhile(wanted.length);
    },
    broughtBack: async () => {},
  };
  return calls as ChangeCalls;
}

const stagingIn = async (root: string): Promise<string | undefined> =>
  (await readdir(root)).find((name) => name.startsWith(stagingPrefix));

describe('[N5] changes that are brought to a folder to which somebody else writes', () => {
  it('arrive, and leave nothing behind', async () => {
    const { root } = await folders();
    const { applied } = await applyChanges(changesOf(root, { a: 'one', b: 'two' }));
    expect(applied).toBe(true);
    expect(await readFile(join(root, 'b'), 'utf8')).toBe('two');
    expect((await readdir(root)).sort()).toEqual(['a', 'b']);
  });

  it('are not written through a link that takes the place of where they wait', async () => {
    const { root, outside } = await folders();
    const seen: string[][] = [];
    const swap = async (index: number): Promise<void> => {
      seen.push(await readdir(outside));
      if (index !== 0) return;
      const name = (await stagingIn(root)) ?? '';
      await rename(join(root, name), join(root, 'moved'));
      await symlink(outside, join(root, name));
    };
    await applyChanges(changesOf(root, { a: 'one', b: 'two' }, swap)).catch(() => {});
    expect(seen).toEqual([[], [], []]);
    expect(await readdir(outside)).toEqual([]);
  });

  it('take nothing away but what waited there', async () => {
    const { root, outside } = await folders();
    await writeFile(join(outside, '0'), 'kept');
    await writeFile(join(outside, 'kept'), 'kept');
    // As a process that was killed leaves it, and as a sandbox fills it.
    const abandoned = join(root, `${stagingPrefix}${2 ** 30}-x`);
    await mkdir(join(abandoned, 'folder'), { recursive: true });
    await writeFile(join(abandoned, '7'), 'waited');
    await symlink(outside, join(abandoned, '8'));
    await symlink(outside, join(root, `${stagingPrefix}${2 ** 30}-link`));
    const empty = join(root, `${stagingPrefix}${2 ** 30}-y`);
    await mkdir(empty);
    await writeFile(join(empty, '1'), 'waited');
    await applyChanges(changesOf(root, { a: 'one' }));
    expect((await readdir(outside)).sort()).toEqual(['0', 'kept']);
    expect(await readdir(abandoned)).toEqual(['folder']);
    expect((await readdir(root)).sort()).toEqual([`${stagingPrefix}${2 ** 30}-x`, 'a']);
  });
});

const TiB = 2 ** 40;
const end = Buffer.from('end');

function fileOf(path: string, pieces: readonly Piece[], mode = 0o644): WorkspaceChange {
  const hash = new ContentHash();
  let size = 0;
  for (const piece of pieces) {
    hash.update(piece);
    size += isHole(piece) ? piece.holeBytes : piece.length;
  }
  return {
    path,
    pathBytes: Buffer.from(path),
    change: 'added',
    after: { kind: 'file', mode, size, sha256: hash.digest() },
  };
}

/** What comes of them is given as it is, whatever was said of it. */
function callsOf(
  root: string,
  files: readonly (readonly [WorkspaceChange, readonly Piece[]])[],
): ChangeCalls {
  const pieces = new Map(files);
  const calls: Pick<ChangeCalls, 'list' | 'contents' | 'broughtBack'> = {
    list: async () => ({ source: root, target: '/workspace', changes: files.map(([change]) => change) }),
    contents: async function* (_target, wanted) {
      for (const change of wanted) {
        const own = pieces.get(change) ?? [];
        yield {
          change,
          chunks: (async function* () {
            yield* own as readonly (Buffer | Hole)[];
          })(),
        };
      }
    },
    broughtBack: async () => {},
  };
  return calls as ChangeCalls;
}

function mountTmpfs(at: string, size: string): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', at]);
  onTestFinished(() => void execFileSync('umount', [at]));
}

when(asRoot).describe('[N5] a change below another file system that is mounted in the folder', () => {
  it('is copied there with its holes, while others have their turn', async () => {
    const { root } = await folders();
    const below = join(root, 'mounted');
    await mkdir(below);
    mountTmpfs(below, '64m');
    const pieces = [Buffer.alloc(16 * 2 ** 20, 'x'), { holeBytes: TiB }, end, { holeBytes: TiB }];
    let [isDone, wasSeen] = [false, false];
    const look = async (): Promise<void> => {
      while (!isDone) {
        wasSeen ||= (await readdir(below)).some((name) => name.startsWith(stagingPrefix));
        await new Promise(setImmediate);
      }
    };
    const looking = look();
    const calls = callsOf(root, [[fileOf('mounted/huge', pieces, 0o755), pieces]]);
    const { applied } = await applyChanges(calls).finally(async () => {
      isDone = true;
      await looking;
    });
    expect(applied).toBe(true);
    expect(wasSeen).toBe(true);
    expect(await readdir(below)).toEqual(['huge']);
    const file = await open(join(below, 'huge'));
    onTestFinished(() => file.close());
    const { size, blocks, mode } = await file.stat();
    expect(size).toBe(2 * TiB + 16 * 2 ** 20 + end.length);
    expect(blocks * 512).toBeLessThan(17 * 2 ** 20);
    expect(mode & 0o7777).toBe(0o755 & ~process.umask());
    const { buffer } = await file.read(Buffer.alloc(5), 0, 5, 16 * 2 ** 20 + TiB - 1);
    expect(buffer.toString()).toBe('\0end\0');
  });

  it('leaves no part of itself where it has no room', async () => {
    const { root } = await folders();
    const below = join(root, 'mounted');
    await mkdir(below);
    mountTmpfs(below, '4m');
    const pieces = [Buffer.alloc(8 * 2 ** 20, 'x')];
    const applying = applyChanges(callsOf(root, [[fileOf('mounted/large', pieces), pieces]]));
    await expect(applying).rejects.toMatchObject({ code: 'apply_failed' });
    expect(await readdir(below)).toEqual([]);
  });
});

describe('[N5] a file with holes that is here already', () => {
  const holes: readonly Piece[] = [{ holeBytes: TiB }, end];
  const changed = (pieces: readonly Piece[]): WorkspaceChange => ({
    ...fileOf('sparse', pieces),
    change: 'changed',
    before: fileOf('sparse', [{ holeBytes: TiB }, Buffer.from('old')]).after ?? { kind: 'unknown' },
  });

  it('is not read through its holes: it is in conflict, and overwritten by force', async () => {
    const { root } = await folders();
    const at = join(root, 'sparse');
    await writeFile(at, '');
    await truncate(at, TiB + end.length);
    const calls = callsOf(root, [[changed(holes), holes]]);
    const { applied, conflicts } = await applyChanges(calls);
    expect(applied).toBe(false);
    expect(conflicts).toEqual([
      {
        path: 'sparse',
        host: 'has more than 16 GiB of holes and was not compared',
        inside: 'changed',
        isHard: false,
      },
    ]);
    expect(await applyChanges(calls, { force: true })).toMatchObject({ applied: true, conflicts: [] });
    const { size, blocks } = await stat(at);
    expect(size).toBe(TiB + end.length);
    expect(blocks).toBeGreaterThan(0);
  });

  it('is compared where it has fewer, and not at all where its size says that it differs', async () => {
    const { root } = await folders();
    const few: readonly Piece[] = [{ holeBytes: 2 ** 26 }, end];
    await writeFile(join(root, 'few'), '');
    await truncate(join(root, 'few'), 2 ** 26);
    await writeFile(join(root, 'few'), end, { flag: 'a' });
    await writeFile(join(root, 'other'), '');
    await truncate(join(root, 'other'), TiB);
    const other = [Buffer.from('x')];
    const files = [
      [fileOf('few', few), few],
      [fileOf('other', other), other],
    ] as const;
    const { same, conflicts } = await applyChanges(callsOf(root, files));
    expect(same.map(({ path }) => path)).toEqual(['few']);
    expect(conflicts).toMatchObject([{ path: 'other', host: 'added a file' }]);
  });
});

describe('[N5] set-id bits', () => {
  it.each([
    ['of a new file', undefined, 0o755 & ~process.umask()],
    ['of a file that is replaced, inside and here', 0o4755, 0o755],
  ])('%s do not come from a porter that sends them', async (_of, before, expected) => {
    const { root } = await folders();
    const at = join(root, 'program');
    const [old, now] = [Buffer.from('old'), Buffer.from('new')];
    if (before !== undefined) {
      await writeFile(at, old);
      await chmod(at, before);
      expect((await stat(at)).mode & 0o7777).toBe(before);
    }
    const added = fileOf('program', [now], 0o6755);
    const was = fileOf('program', [old], 0o4755).after;
    const change: WorkspaceChange =
      before === undefined || was === undefined ? added : { ...added, change: 'changed', before: was };
    expect(await applyChanges(callsOf(root, [[change, [now]]]))).toMatchObject({ applied: true });
    expect(await readFile(at, 'utf8')).toBe('new');
    expect((await stat(at)).mode & 0o7777).toBe(expected);
  });
});
