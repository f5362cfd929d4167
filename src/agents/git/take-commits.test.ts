import { execFileSync } from 'node:child_process';
import {
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { gitEnvironment } from './config.ts';
import { baseRef, makePrivateClone } from './private-clone.ts';
import { type BundleLimits, referenceSpace, takeCommits } from './take-commits.ts';
import { provideWorktree } from './worktree.ts';

const identity = ['user.name=Box', 'user.email=box@example.invalid', 'init.defaultBranch=main'];
const settings = [...identity, 'protocol.file.allow=always', 'commit.gpgsign=false'].flatMap((one) => [
  '-c',
  one,
]);

function git(folder: string, ...args: readonly string[]): string {
  return gitWith(folder, '', ...args);
}

function gitWith(folder: string, input: string | Buffer, ...args: readonly string[]): string {
  const env = { ...gitEnvironment(), GIT_CONFIG_GLOBAL: '/dev/null', LC_ALL: 'C' };
  return execFileSync('git', ['-C', folder, ...settings, ...args], { input, env, stdio: 'pipe' })
    .toString()
    .trim();
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-git-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

interface Pair {
  readonly host: string;
  /** As it is inside the sandbox. */
  readonly clone: string;
}

async function pair(options: { readonly format?: string; readonly branch?: string } = {}): Promise<Pair> {
  const folder = temporaryFolder();
  const host = join(folder, 'host');
  git(folder, 'init', '--quiet', `--object-format=${options.format ?? 'sha1'}`, host);
  writeFileSync(join(host, 'a.txt'), 'one\n');
  git(host, 'add', '.');
  git(host, 'commit', '--quiet', '-m', 'first');
  return { host, clone: (await clone(host, options.branch ?? 'work')).folder };
}

async function clone(host: string, branch: string) {
  const folder = join(temporaryFolder(), 'clone');
  const made = await makePrivateClone({ repository: host, branch, folder, environment: gitEnvironment() });
  return { folder, ...made };
}

function bundle(from: string, ...references: readonly string[]): string {
  const file = join(temporaryFolder(), 'x.bundle');
  const wanted = references.length === 0 ? ['HEAD', '--branches', '--not', baseRef] : references;
  git(from, 'bundle', 'create', '--quiet', file, ...wanted);
  return file;
}

const take = (host: string, file: string, limits: Partial<BundleLimits> = {}) =>
  takeCommits({
    repository: host,
    environment: gitEnvironment(),
    space: 'box',
    chunks: createReadStream(file) as AsyncIterable<Buffer>,
    limits,
  });

const refusal = (why: RegExp) =>
  expect.objectContaining({ code: 'commits_refused', message: expect.stringMatching(why) }) as Error;

function commit(folder: string, file: string, content: string): string {
  writeFileSync(join(folder, file), content);
  git(folder, 'add', '-A');
  git(folder, 'commit', '--quiet', '-m', `change ${file}`);
  return git(folder, 'rev-parse', 'HEAD');
}

/** A commit on `work` whose tree is these raw entries. */
function commitTree(folder: string, entries: readonly (readonly [string, string, string])[]): void {
  const raw = entries.map(([mode, name, object]) =>
    Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(object, 'hex')]),
  );
  const tree = gitWith(
    folder,
    Buffer.concat(raw),
    'hash-object',
    '-t',
    'tree',
    '-w',
    '--literally',
    '--stdin',
  );
  const made = git(folder, 'commit-tree', tree, '-p', baseRef, '-m', 'crafted');
  git(folder, 'update-ref', 'refs/heads/work', made);
}

const blob = (folder: string, content: string): string =>
  gitWith(folder, content, 'hash-object', '-w', '--stdin');

/** Nothing of the host's repository changed: no reference, no object, no file. */
function stateOf(host: string): string {
  return [
    git(host, 'for-each-ref'),
    git(host, 'count-objects', '-v'),
    git(host, 'status', '--porcelain'),
  ].join('\n');
}

describe('a private clone', () => {
  it('[R7] has the branch and its files, and nothing else of the repository', async () => {
    const { host } = await pair();
    git(host, 'config', 'credential.helper', '!echo password=secret');
    git(host, 'config', 'core.fsmonitor', '/bin/evil');
    git(host, 'config', 'remote.origin.url', 'https://me:secret@git.example/a.git');
    git(host, 'config', 'remote.backup.url', '/mnt/backup');
    writeFileSync(join(host, '.git/hooks/pre-commit'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    git(host, 'branch', 'other');
    git(host, 'tag', 'v1');
    const { folder, commit: at } = await clone(host, 'feature/x');
    expect(at).toBe(git(host, 'rev-parse', 'HEAD'));
    expect(git(folder, 'for-each-ref', '--format=%(refname)')).toBe(`refs/heads/feature/x\n${baseRef}`);
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('one\n');
    expect(existsSync(join(folder, '.git/hooks'))).toBe(false);
    expect(existsSync(join(folder, '.git/logs'))).toBe(false);
    const config = readFileSync(join(folder, '.git/config'), 'utf8');
    expect(config).not.toMatch(/secret|credential|fsmonitor|backup/);
    expect(git(folder, 'config', 'remote.origin.url')).toBe('https://git.example/a.git');
    expect(git(folder, 'status', '--porcelain')).toBe('');
    // The host has no branch by that.
    expect(git(host, 'branch', '--format=%(refname:short)')).toBe('main\nother');
  });

  it('begins an existing branch where it is, whatever is checked out', async () => {
    const { host } = await pair();
    git(host, 'branch', 'old');
    commit(host, 'b.txt', 'two\n');
    git(host, 'checkout', '--quiet', '--detach');
    const old = await clone(host, 'old');
    expect(old.commit).toBe(git(host, 'rev-parse', 'old'));
    expect(existsSync(join(old.folder, 'b.txt'))).toBe(false);
    expect((await clone(host, 'new')).commit).toBe(git(host, 'rev-parse', 'HEAD'));
  });

  it('says what is not in it', async () => {
    const { host } = await pair();
    writeFileSync(join(host, '.gitattributes'), '*.bin filter=lfs diff=lfs\n');
    mkdirSync(join(host, 'sub'));
    git(host, 'update-index', '--add', '--cacheinfo', `160000,${git(host, 'rev-parse', 'HEAD')},sub`);
    commit(host, 'x.bin', 'version https://git-lfs.github.com/spec/v1\n');
    writeFileSync(join(host, 'a.txt'), 'not committed\n');
    const { notes, folder } = await clone(host, 'work');
    expect(notes.map(({ code }) => code)).toEqual([
      'workspace_cloned',
      'clone_without_uncommitted',
      'clone_without_submodules',
      'clone_without_lfs',
    ]);
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('one\n');
  });

  it('refuses branches that git does not take, or takes for something else', async () => {
    const { host } = await pair();
    for (const branch of ['two words', '-x', 'a..b', 'x.lock', 'HEAD', 'x'.repeat(300), '', 'a\u0007']) {
      await expect(clone(host, branch), branch).rejects.toThrow(
        expect.objectContaining({ code: 'repository_unfit' }) as Error,
      );
    }
  });

  it('refuses what is no repository, has no commit, or is a folder in one', async () => {
    const unfit = expect.objectContaining({ code: 'repository_unfit' }) as Error;
    const folder = temporaryFolder();
    await expect(clone(folder, 'work')).rejects.toThrow(unfit);
    git(folder, 'init', '--quiet');
    await expect(clone(folder, 'work')).rejects.toThrow(/no commit yet/);
    const { host } = await pair();
    await expect(clone(join(host, '.git'), 'work')).rejects.toThrow(unfit);
    mkdirSync(join(host, 'below'));
    await expect(clone(join(host, 'below'), 'work')).rejects.toThrow(/inside the repository/);
  });
});

describe('commits from inside', () => {
  it.each(['sha1', 'sha256'])('come into references of their own, in a repository of %s', async (format) => {
    const { host, clone: inside } = await pair({ format });
    const tip = commit(inside, 'b.txt', 'two\n');
    git(inside, 'branch', 'größe/🚀');
    const taken = await take(host, bundle(inside));
    expect(taken).toEqual({
      commits: 1,
      leftOut: [],
      references: expect.arrayContaining([
        { branch: 'work', ref: 'refs/sallyport/box/work', commit: tip },
        { branch: 'größe/🚀', ref: 'refs/sallyport/box/größe/🚀', commit: tip },
      ]) as unknown,
    });
    expect(git(host, 'show', 'refs/sallyport/box/work:b.txt')).toBe('two');
    expect(git(host, 'branch', '--format=%(refname:short)')).toBe('main');
    expect(existsSync(join(host, 'b.txt'))).toBe(false);
    expect(existsSync(join(host, '.git/FETCH_HEAD'))).toBe(false);
    git(host, 'fsck', '--strict');
  });

  it('may be amended, and what was there before stays in the log of the reference', async () => {
    const { host, clone: inside } = await pair();
    const first = commit(inside, 'b.txt', 'two\n');
    await take(host, bundle(inside));
    git(inside, 'commit', '--quiet', '--amend', '-m', 'again');
    await take(host, bundle(inside));
    expect(git(host, 'rev-parse', 'refs/sallyport/box/work@{1}')).toBe(first);
  });

  it('may have more files than one call takes arguments', async () => {
    const { host, clone: inside } = await pair();
    const empty = blob(inside, '');
    const names = Array.from({ length: 150_000 }, (_, index) => `f${String(index).padStart(6, '0')}`);
    commitTree(
      inside,
      names.map((name) => ['100644', name, empty] as const),
    );
    await take(host, bundle(inside));
    expect(git(host, 'ls-tree', '--name-only', 'refs/sallyport/box/work', 'f149999')).toBe('f149999');
  });

  it('come as HEAD where none of the branches has them', async () => {
    const { host, clone: inside } = await pair();
    git(inside, 'checkout', '--quiet', '--detach');
    const tip = commit(inside, 'b.txt', 'two\n');
    const { references } = await take(host, bundle(inside));
    expect(references).toEqual([{ branch: 'HEAD', ref: 'refs/sallyport/box/HEAD', commit: tip }]);
  });

  it('come to a shallow repository as well', async () => {
    const { host } = await pair();
    commit(host, 'b.txt', 'two\n');
    const shallow = join(temporaryFolder(), 'shallow');
    git(host, 'clone', '--quiet', '--depth=1', `file://${host}`, shallow);
    const { folder } = await clone(shallow, 'work');
    commit(folder, 'c.txt', 'three\n');
    expect((await take(shallow, bundle(folder))).commits).toBe(1);
    expect(git(shallow, 'rev-list', '--count', 'refs/sallyport/box/work')).toBe('2');
  });

  it('run no hook and no program of the host’s configuration', async () => {
    const { host, clone: inside } = await pair();
    const witness = join(temporaryFolder(), 'ran');
    for (const name of [
      'reference-transaction',
      'post-checkout',
      'post-merge',
      'pre-auto-gc',
      'post-commit',
    ]) {
      writeFileSync(join(host, '.git/hooks', name), `#!/bin/sh\ntouch ${witness}\n`, { mode: 0o755 });
    }
    git(host, 'config', 'core.fsmonitor', `touch ${witness}; false`);
    commit(inside, 'b.txt', 'two\n');
    rmSync(witness, { force: true });
    await take(host, bundle(inside));
    await clone(host, 'other');
    expect(existsSync(witness)).toBe(false);
  });
});

describe('a bundle that is made to harm', () => {
  it.each([
    ['.git', /hasDotgit/],
    ['.GIT', /hasDotgit/],
    ['git~1', /hasDotgit/],
    ['.g\u200cit', /hasDotgit/],
    ['..', /hasDotdot/],
    ['a/b', /fullPathname/],
  ])('is refused with a path %j', async (name, why) => {
    const { host, clone: inside } = await pair();
    commitTree(inside, [['100644', name, blob(inside, 'evil')]]);
    const before = stateOf(host);
    await expect(take(host, bundle(inside))).rejects.toThrow(refusal(why));
    expect(stateOf(host)).toBe(before);
  });

  it.each([
    ['an option as its url', '[submodule "x"]\n\tpath = x\n\turl = --upload-pack=evil\n', /gitmodules/i],
    [
      'a name that leads out',
      '[submodule "../../x"]\n\tpath = x\n\turl = https://a.example/x\n',
      /gitmodules/i,
    ],
    [
      'a command',
      '[submodule "x"]\n\tpath = x\n\turl = https://a.example/x\n\tupdate = !evil\n',
      /gitmodules/i,
    ],
  ])('is refused with a submodule that has %s', async (_, content, why) => {
    const { host, clone: inside } = await pair();
    commitTree(inside, [['100644', '.gitmodules', blob(inside, content)]]);
    await expect(take(host, bundle(inside))).rejects.toThrow(refusal(why));
  });

  it('is refused with a .gitmodules that is a link', async () => {
    const { host, clone: inside } = await pair();
    commitTree(inside, [['120000', '.gitmodules', blob(inside, 'other')]]);
    await expect(take(host, bundle(inside))).rejects.toThrow(refusal(/gitmodules/i));
  });

  it('is refused with a link that other paths lead through where case does not count', async () => {
    const { host, clone: inside } = await pair();
    const file = blob(inside, 'evil');
    const below = gitWith(inside, `100755 blob ${file}\tpost-checkout\n`, 'mktree');
    commitTree(inside, [
      ['120000', 'A', blob(inside, 'elsewhere')],
      ['40000', 'a', below],
    ]);
    await expect(take(host, bundle(inside))).rejects.toThrow(refusal(/case/));
  });

  it('is refused with a link into a .git', async () => {
    const { host, clone: inside } = await pair();
    symlinkSync('.git/hooks', join(inside, 'link'));
    commit(inside, 'b.txt', 'two\n');
    await expect(take(host, bundle(inside))).rejects.toThrow(refusal(/leads into a \.git/));
  });

  it('is refused with objects that are broken or missing', async () => {
    const { host, clone: inside } = await pair();
    commitTree(inside, [['100644', 'a', '1'.repeat(40)]]);
    const broken = join(temporaryFolder(), 'x.bundle');
    const tip = git(inside, 'rev-parse', 'refs/heads/work');
    const pack = execFileSync('git', ['-C', inside, 'pack-objects', '--stdout', '-q'], { input: `${tip}\n` });
    const head = `# v2 git bundle\n-${git(inside, 'rev-parse', baseRef)}\n${tip} refs/heads/work\n\n`;
    writeFileSync(broken, Buffer.concat([Buffer.from(head), pack]));
    const before = stateOf(host);
    await expect(take(host, broken)).rejects.toThrow(refusal(/./));
    const good = await pair();
    commit(good.clone, 'b.txt', 'x'.repeat(10_000));
    const whole = readFileSync(bundle(good.clone));
    writeFileSync(broken, whole.subarray(0, whole.length - 30));
    await expect(take(good.host, broken)).rejects.toThrow(refusal(/./));
    whole[whole.length - 40] = (whole[whole.length - 40] ?? 0) ^ 0xff;
    writeFileSync(broken, whole);
    await expect(take(good.host, broken)).rejects.toThrow(refusal(/./));
    expect(stateOf(host)).toBe(before);
  });

  it('is refused with a commit that is not well-formed', async () => {
    const { host, clone: inside } = await pair();
    const raw = `tree ${git(inside, 'rev-parse', 'HEAD^{tree}')}\nparent ${git(inside, 'rev-parse', baseRef)}\nauthor nobody\n\nx\n`;
    const made = gitWith(inside, raw, 'hash-object', '-t', 'commit', '-w', '--literally', '--stdin');
    writeFileSync(join(inside, '.git/refs/heads/work'), `${made}\n`);
    await expect(take(host, bundle(inside))).rejects.toThrow(refusal(/./));
  });

  it('is refused when it is too large, packed or unpacked, and cut off while it is read', async () => {
    const { host, clone: inside } = await pair();
    commit(inside, 'zeros', '0'.repeat(5_000_000));
    const file = bundle(inside);
    await expect(take(host, file, { unpackedBytes: 1_000_000 })).rejects.toThrow(refusal(/unpacked/));
    await expect(take(host, file, { objects: 1 })).rejects.toThrow(refusal(/objects/));
    let asked = 0;
    async function* endless(): AsyncGenerator<Buffer> {
      yield Buffer.from(`# v2 git bundle\n${'a'.repeat(40)} refs/heads/x\n\n`);
      for (;;) yield Buffer.alloc(2 ** 16, asked++ % 256);
    }
    const wish = { repository: host, environment: gitEnvironment(), space: 'box', chunks: endless() };
    await expect(takeCommits({ ...wish, limits: { bundleBytes: 2 ** 20 } })).rejects.toThrow(
      refusal(/more than/),
    );
    expect(asked).toBeLessThan(20);
  });

  it('is refused when it builds on what the host does not have', async () => {
    const { host, clone: inside } = await pair();
    commit(inside, 'b.txt', 'two\n');
    const first = git(inside, 'rev-parse', 'HEAD');
    commit(inside, 'c.txt', 'three\n');
    await expect(take(host, bundle(inside, 'refs/heads/work', '--not', first))).rejects.toThrow(
      refusal(/not in this repository/),
    );
  });

  it('gets no reference for odd names and for what is no branch or no commit', async () => {
    const { host, clone: inside } = await pair();
    const tip = commit(inside, 'b.txt', 'two\n');
    const file = bundle(inside, 'refs/heads/work', '--not', baseRef);
    const odd = [
      'refs/heads/WORK',
      'refs/heads/-rf',
      'refs/heads/a/.git/b',
      'refs/heads/zero\u200bwidth',
      'refs/heads/../../config',
      'refs/heads/two words',
      'refs/heads/',
      'refs/heads/x.lock',
      'refs/tags/v1',
      'refs/remotes/origin/main',
      '../../../etc/passwd',
    ];
    const tree = git(inside, 'rev-parse', 'HEAD^{tree}');
    const lines = [...odd.map((name) => `${tip} ${name}\n`), `${tree} refs/heads/tree\n`];
    const crafted = readFileSync(file);
    const at = crafted.indexOf('\n\n') + 1;
    writeFileSync(
      file,
      Buffer.concat([crafted.subarray(0, at), Buffer.from(lines.join('')), crafted.subarray(at)]),
    );
    const { references, leftOut } = await take(host, file);
    expect(references.map(({ ref }) => ref)).toEqual(['refs/sallyport/box/work']);
    expect(leftOut.map(({ branch }) => branch)).toEqual([...odd, 'refs/heads/tree']);
    expect(git(host, 'for-each-ref', '--format=%(refname)')).toBe('refs/heads/main\nrefs/sallyport/box/work');
  });

  it('leaves everything as it was when one of several references cannot be written', async () => {
    const { host, clone: inside } = await pair();
    git(host, 'update-ref', 'refs/sallyport/box/a/b', 'HEAD');
    commit(inside, 'b.txt', 'two\n');
    git(inside, 'branch', 'a');
    const before = git(host, 'for-each-ref');
    await expect(take(host, bundle(inside))).rejects.toThrow(
      expect.objectContaining({ code: 'git_failed' }) as Error,
    );
    expect(git(host, 'for-each-ref')).toBe(before);
  });

  it('has a place of its own also where the name of the sandbox is none for git', () => {
    expect(referenceSpace({ name: 'a..b', id: 'sbx1' })).toBe('sbx1');
    expect(referenceSpace({ name: 'a.lock', id: 'sbx1' })).toBe('sbx1');
    expect(referenceSpace({ name: 'claude-main-12345678', id: 'sbx1' })).toBe('claude-main-12345678');
  });
});

describe('[A16] a bundle that ends in the middle', () => {
  it('leaves the repository as it was, and nothing beside it', async () => {
    const { host, clone: inside } = await pair();
    commit(inside, 'b.txt', 'x'.repeat(100_000));
    const whole = readFileSync(bundle(inside));
    async function* cut(): AsyncGenerator<Buffer> {
      yield whole.subarray(0, 200);
      throw new Error('the daemon is gone');
    }
    const before = stateOf(host);
    const wish = { repository: host, environment: gitEnvironment(), space: 'box', chunks: cut() };
    await expect(takeCommits(wish)).rejects.toThrow('the daemon is gone');
    expect(stateOf(host)).toBe(before);
  });
});

describe('a worktree for a branch', () => {
  const provide = (repository: string, branch: string) =>
    provideWorktree({ repository, branch, environment: gitEnvironment() });

  it('is made beside the repository, without its hooks, and found again', async () => {
    const { host } = await pair();
    const witness = join(temporaryFolder(), 'ran');
    writeFileSync(join(host, '.git/hooks/post-checkout'), `#!/bin/sh\ntouch ${witness}\n`, { mode: 0o755 });
    writeFileSync(join(host, 'a.txt'), 'dirty\n');
    const made = await provide(host, 'feature/x');
    expect(made).toMatchObject({ isNew: true });
    expect(made.folder.startsWith(`${host}.worktrees/feature-x-`)).toBe(true);
    expect(readFileSync(join(made.folder, 'a.txt'), 'utf8')).toBe('one\n');
    expect(existsSync(witness)).toBe(false);
    expect(await provide(host, 'feature/x')).toEqual({ ...made, isNew: false });
    // From inside of it as well.
    expect(await provide(made.folder, 'feature/x')).toEqual({ ...made, isNew: false });
    expect((await provide(made.folder, 'feature-x')).folder).toBe(`${host}.worktrees/feature-x`);
  });

  it('is made from a HEAD that is on no branch, and of a branch that is there', async () => {
    const { host } = await pair();
    git(host, 'branch', 'old');
    git(host, 'checkout', '--quiet', '--detach');
    commit(host, 'b.txt', 'two\n');
    expect(existsSync(join((await provide(host, 'new')).folder, 'b.txt'))).toBe(true);
    expect(existsSync(join((await provide(host, 'old')).folder, 'b.txt'))).toBe(false);
  });

  it('is refused where the branch is checked out in the repository, its worktree is gone, or there is no commit', async () => {
    const unfit = expect.objectContaining({ code: 'repository_unfit' }) as Error;
    const { host } = await pair();
    await expect(provide(host, 'main')).rejects.toThrow(unfit);
    const { folder } = await provide(host, 'side');
    rmSync(folder, { recursive: true });
    await expect(provide(host, 'side')).rejects.toThrow(/that is gone/);
    const empty = temporaryFolder();
    git(empty, 'init', '--quiet');
    await expect(provide(empty, 'x')).rejects.toThrow(unfit);
    await expect(provide(temporaryFolder(), 'x')).rejects.toThrow(unfit);
  });
});
