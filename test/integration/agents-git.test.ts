/** Git for agents: a private clone whose commits come back, a live worktree, and several tasks at once. */

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { SandboxEvent } from '../../src/sdk/events.ts';
import { Sandbox } from '../../src/sdk/sandbox.ts';
import { envs, git, gitBox, homeWithAgent, repository } from '../support/agent-repository.ts';
import { removeAfterwards, sally, startSally } from '../support/cli.ts';
import { daemonHome, type TestDaemon } from '../support/daemon-home.ts';
import { testEngine } from '../support/engine.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { portableGit } from '../support/portable-git.ts';

const cloneOf = async (daemon: TestDaemon, path: string, branch: string): Promise<Sandbox> =>
  await Sandbox.create(
    {
      image: testEngine().image,
      mounts: [portableGit().mount],
      envs,
      workspace: { path, mode: 'clone', branch },
    },
    { client: daemon.client },
  );

const inside = async (box: Sandbox, script: string): Promise<string> =>
  (await box.sh(`cd /workspace && ${script}`, { check: true })).stdout;

async function notesOf(box: Sandbox): Promise<readonly string[]> {
  const notes: string[] = [];
  const { sequence } = await box.refresh();
  for await (const event of box.events({ since: 0 }) as AsyncIterable<SandboxEvent>) {
    if (event.type === 'sandbox.note') notes.push(event.code);
    if (event.sequence >= sequence) break;
  }
  return notes;
}

describe('[R7] a private clone', () => {
  test('is worked on inside; its commits come back into references of their own, and what is not committed is told', async () => {
    const daemon = await (await daemonHome()).start();
    const path = repository();
    git(path, 'config', 'remote.origin.url', 'https://me:secret@git.example/a.git');
    writeFileSync(join(path, '.git/hooks/pre-commit'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    writeFileSync(join(path, 'file'), 'not committed here\n');
    const box = await cloneOf(daemon, path, 'fix/login');
    expect(box.info.workspace).toMatchObject({ mode: 'clone', branch: 'fix/login' });
    expect(await notesOf(box)).toEqual(
      expect.arrayContaining(['workspace_cloned', 'clone_without_uncommitted']),
    );
    expect(
      await inside(
        box,
        'cat file; git branch --show-current; git remote get-url origin; ls .git/hooks | wc -l',
      ),
    ).toBe('first\nfix/login\nhttps://git.example/a.git\n0\n');
    expect((await box.changes()).changes).toEqual([]);
    await inside(
      box,
      'echo two > two && rm file && git add -A && git commit -qm inside && echo loose > loose',
    );
    await expect(box.remove()).rejects.toMatchObject({ code: 'sandbox_changed' });

    const brought = await box.bringCommits();
    const ref = `refs/sallyport/${box.name}/fix/login`;
    expect(brought).toMatchObject({ commits: 1, leftOut: [], references: [{ branch: 'fix/login', ref }] });
    expect(brought.uncommitted.map((change) => change.path)).toEqual(['loose']);
    expect(git(path, 'log', '--format=%s %an', ref)).toBe('inside Agent\nfirst Host');
    expect(git(path, 'ls-tree', '--name-only', ref)).toBe('two');
    expect(git(path, 'branch', '--format=%(refname:short)')).toBe('main');
    expect(readFileSync(join(path, 'file'), 'utf8')).toBe('not committed here\n');
    expect((await box.changes()).changes.map((change) => change.path)).toEqual(['loose']);

    await inside(box, 'git add -A && git commit -qm more && git status');
    expect(await box.bringCommits()).toMatchObject({ commits: 2, uncommitted: [] });
    // Nothing is only inside any more.
    await box.remove();
    expect(git(path, 'log', '-1', '--format=%s', ref)).toBe('more');
  });

  test('that nothing was committed in has nothing to bring; a sandbox of another kind is told so', async () => {
    const daemon = await (await daemonHome()).start();
    const path = repository();
    const box = await cloneOf(daemon, path, 'main');
    expect(await box.bringCommits()).toMatchObject({ commits: 0, references: [], uncommitted: [] });
    expect(git(path, 'for-each-ref', '--format=%(refname)')).toBe('refs/heads/main');
    await box.remove();
    const other = await Sandbox.create({ image: testEngine().image }, { client: daemon.client });
    await expect(other.bringCommits()).rejects.toMatchObject({ code: 'workspace_not_cloned' });
    await other.remove();
  });

  test('is refused before anything is made: no repository, no commit, no such name', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    const empty = temporaryFolder();
    await expect(cloneOf(daemon, empty, 'main')).rejects.toMatchObject({ code: 'repository_unfit' });
    git(empty, 'init', '--quiet');
    await expect(cloneOf(daemon, empty, 'main')).rejects.toMatchObject({ code: 'repository_unfit' });
    await expect(cloneOf(daemon, repository(), 'two words')).rejects.toMatchObject({
      code: 'repository_unfit',
    });
    const spec = { image: testEngine().image, workspace: { path: repository(), mode: 'clone' as const } };
    await expect(Sandbox.create(spec, { client: daemon.client })).rejects.toMatchObject({
      code: 'refused_by_policy',
    });
    expect(await home.engine.list(home.owner)).toEqual([]);
    expect(existsSync(join(home.stateDir, 'clones'))).toBe(false);
    expect((await daemon.client.json<{ sandboxes: unknown[] }>('GET', '/v1/sandboxes')).sandboxes).toEqual(
      [],
    );
  });

  test('[A16] of a daemon that is killed in the middle is not left behind, and is made anew', async () => {
    const home = await daemonHome();
    const path = repository();
    const first = await home.start({ SALLYPORT_CRASH_AT: 'create.cloned' });
    await expect(cloneOf(first, path, 'work')).rejects.toBeDefined();
    await first.ended;
    expect(readdirSync(join(home.stateDir, 'clones'))).toHaveLength(1);
    const next = await home.start();
    expect(existsSync(join(home.stateDir, 'clones'))).toBe(false);
    expect(await home.engine.list(home.owner)).toEqual([]);
    const [failed] = await Sandbox.list({ client: next.client });
    const box = await Sandbox.connect(failed?.id ?? '', { client: next.client });
    await box.start();
    expect(await inside(box, 'git branch --show-current')).toBe('work\n');
    await box.remove({ force: true });
  });
});

describe('[R7] what a sandbox does to its clone and to its git', () => {
  /** Instead of git, from here on: what it would put where the bundle is expected. */
  const fake = (act: string): string =>
    `mkdir -p /tmp/first && printf '%s\\n' '#!/bin/sh' 'case "$*" in *rev-list*) echo 1;; *) f=/workspace/.git/sallyport.bundle; rm -rf $f; ${act};; esac' > /tmp/first/git && chmod +x /tmp/first/git`;

  test('is refused, and leaves the repository as it was', async () => {
    const daemon = await (await daemonHome()).start();
    const path = repository();
    const box = await cloneOf(daemon, path, 'work');
    const before = git(path, 'for-each-ref');
    const tries: readonly (readonly [string, string])[] = [
      ['ln -s /etc/passwd $f', 'commits_refused'],
      ['mkfifo $f', 'file_'],
      ['mkdir $f', 'file_'],
      ['echo nothing > $f', 'commits_refused'],
      ['head -c 100000 /dev/zero > $f', 'commits_refused'],
      ['exit 3', 'git_failed'],
    ];
    for (const [act, code] of tries) {
      await box.sh(fake(act), { check: true });
      await expect(box.bringCommits(), act).rejects.toMatchObject({
        code: expect.stringMatching(`^${code}`) as unknown,
      });
    }
    await box.sh('rm -r /tmp/first', { check: true });
    await inside(box, 'head -c 3000000 /dev/urandom > large && git add -A && git commit -qm large');
    await expect(box.bringCommits({ maxBytes: 1_000_000 })).rejects.toMatchObject({
      code: 'commits_refused',
    });
    await inside(box, 'rm large && ln -s .git/hooks link && git add -A && git commit -qm link');
    await expect(box.bringCommits()).rejects.toMatchObject({ code: 'commits_refused' });
    expect(git(path, 'for-each-ref')).toBe(before);
    // A repository elsewhere inside is as good as any: only what it holds counts.
    await inside(
      box,
      'git rm -q link && git commit -qm good && mv .git /tmp/elsewhere && ln -s /tmp/elsewhere .git',
    );
    await expect(box.bringCommits()).rejects.toMatchObject({ code: 'commits_refused' });
    await inside(
      box,
      'git reset -q --hard refs/sallyport/base && echo x > x && git add -A && git commit -qm good',
    );
    expect(await box.bringCommits()).toMatchObject({ commits: 1 });
    await box.remove({ force: true });
  });
});

describe('sally agent', () => {
  test('[R4] --branch works on a clone that is found again, and each time brings its commits back', async () => {
    const cwd = repository();
    const env = homeWithAgent();
    const given = gitBox();
    const agent = (branch: string, script: string) =>
      sally(['agent', 'shell', '--branch', branch, ...given, '--', script], { cwd, env });
    const first = await agent('a/task', 'echo 1 > one && git add -A && git commit -qm one');
    expect([first.code, first.stderr]).toEqual([
      0,
      expect.stringContaining('1 commit of sallyport-shell-a-task-'),
    ]);
    const name = /of (sallyport-shell-a-task-[0-9a-f]{8}-[0-9a-f]{8}) brought/.exec(first.stderr)?.[1] ?? '';
    removeAfterwards(name);
    const ref = `refs/sallyport/${name}/a/task`;
    expect(git(cwd, 'log', '--format=%s', ref)).toBe('one\nfirst');
    const second = await agent(
      'a/task',
      'echo 2 > two && git add -A && git commit -qm two; touch loose; exit 3',
    );
    expect([second.code, second.stderr]).toEqual([3, expect.stringContaining('not committed (loose)')]);
    expect(git(cwd, 'log', '--format=%s', ref)).toBe('two\none\nfirst');
    expect(git(cwd, 'branch', '--format=%(refname:short)')).toBe('main');
    expect(existsSync(join(cwd, 'one'))).toBe(false);
    // Nothing inside can push: neither to where the host does, nor into the repository itself.
    const upstream = join(temporaryFolder(), 'upstream.git');
    git(cwd, 'init', '--quiet', '--bare', upstream);
    git(cwd, 'remote', 'add', 'origin', upstream);
    git(cwd, 'push', '--quiet', 'origin', 'main');
    const places = ['origin', upstream, `file://${cwd}`, cwd];
    const pushes = places.map(
      (place) => `git push -q '${place}' HEAD:refs/heads/evil 2>/dev/null || echo refused`,
    );
    const pushing = await agent('a/task', pushes.join('\n'));
    expect([pushing.code, pushing.stdout]).toEqual([0, 'refused\n'.repeat(places.length)]);
    for (const folder of [upstream, cwd])
      expect(git(folder, 'for-each-ref', '--format=%(refname)', 'refs/heads')).toBe('refs/heads/main');
    const mixed = await sally(['agent', 'shell', '--branch', 'b', '--workspace-mode', 'copy', '--', 'true'], {
      cwd,
      env,
    });
    expect([mixed.code, mixed.stderr]).toEqual([2, expect.stringContaining('--branch works on a clone')]);
  });

  test('[R4] takes any name that git takes for a branch, keeps alike ones apart, and refuses the others before anything is made', async () => {
    const cwd = repository();
    const env = homeWithAgent();
    const given = gitBox();
    // A work tree with changes, and on no branch: the clone has what is committed, and the rest stays here.
    git(cwd, 'checkout', '--quiet', '--detach');
    writeFileSync(join(cwd, 'file'), 'changed here\n');
    writeFileSync(join(cwd, 'untracked'), 'only here\n');
    const script = 'cat file; ls; git branch --show-current; git commit -q --allow-empty -m "on it"';
    const agent = (branch: string) =>
      sally(['agent', 'shell', '--branch', branch, ...given, '--', script], { cwd, env });
    const boxes = async (): Promise<readonly string[]> => {
      const { sandboxes } = JSON.parse((await sally(['agent', 'ls', '--json'])).stdout) as {
        sandboxes: { name: string; workspace?: { path: string } }[];
      };
      return sandboxes.filter(({ workspace }) => workspace?.path === cwd).map(({ name }) => name);
    };
    onTestFinished(async () => {
      for (const name of await boxes()) await sally(['rm', '--force', name]);
    });

    const long = 'x'.repeat(300);
    for (const [branch, words] of [
      ['two words', /is no name for a branch/],
      ['-begins', /is no name for a branch/],
      ['a..b', /is no name for a branch/],
      [long, /a part of it is longer than 240 bytes/],
    ] as const) {
      const refused = await agent(branch);
      expect([branch, refused.code, refused.stderr]).toEqual([branch, 125, expect.stringMatching(words)]);
    }
    expect(await boxes()).toEqual([]);

    const branches = ['🚀/launch', '🚀-launch', `${'long/'.repeat(59)}tails`];
    for (const branch of branches) {
      const ran = await agent(branch);
      expect([ran.code, ran.stdout, ran.stderr]).toEqual([
        0,
        `first\nfile\n${branch}\n`,
        expect.stringMatching(/not committed[\s\S]*1 commit of /),
      ]);
    }
    expect(new Set(await boxes()).size).toBe(branches.length);
    const references = git(cwd, 'for-each-ref', '--format=%(refname:lstrip=3)', 'refs/sallyport').split('\n');
    expect(references.sort()).toEqual([...branches].sort());
    expect(git(cwd, 'status', '--porcelain')).toBe('M file\n?? untracked');
    expect(readFileSync(join(cwd, 'file'), 'utf8')).toBe('changed here\n');
  });

  test('--each does every line of a file on a branch of its own', async () => {
    const cwd = repository();
    const tasks = ['echo 1 > one && git add -A && git commit -qm one', '# no task', 'exit 7'];
    const file = join(temporaryFolder(), 'tasks.txt');
    writeFileSync(file, tasks.join('\n'));
    const call = ['agent', 'shell', '--each', file, '-j', '2', '--json', ...gitBox()];
    const ran = await sally(call, { cwd, env: homeWithAgent() });
    expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining('1 done, 1 failed, 0 cancelled')]);
    expect(JSON.parse(ran.stdout)).toMatchObject([
      { number: 1, state: 'done', exit_code: 0, changes: 1 },
      { number: 2, state: 'failed', exit_code: 7, changes: 0 },
    ]);
    const [ref = '', ...more] = git(cwd, 'for-each-ref', '--format=%(refname)', 'refs/sallyport').split('\n');
    expect(more).toEqual([]);
    expect(ref).toMatch(/^refs\/sallyport\/sallyport-shell-.*\/shell-echo-1/);
    expect(git(cwd, 'log', '--format=%s', ref)).toBe('one\nfirst');
    const { sandboxes } = JSON.parse((await sally(['agent', 'ls', '--json'])).stdout) as {
      sandboxes: { workspace?: { path: string } }[];
    };
    expect(sandboxes.filter(({ workspace }) => workspace?.path === cwd)).toEqual([]);
  });

  test('--worktree works live on the worktree of the branch, and says what changed', async () => {
    const cwd = repository();
    const env = homeWithAgent();
    const folder = join(`${cwd}.worktrees`, 'side');
    git(cwd, 'worktree', 'add', '--quiet', '-b', 'side', folder);
    // What nobody has committed yet, in the worktree and in the repository's own folder.
    writeFileSync(join(folder, 'loose'), 'of the worktree\n');
    writeFileSync(join(cwd, 'file'), 'changed here\n');
    if (process.getuid?.() === 0) execFileSync('chown', ['-R', '1234:1234', cwd, folder]);
    const call = ['agent', 'shell', '--branch', 'side', '--worktree', ...gitBox(), '--'];
    const ran = await sally(
      [
        ...call,
        'git branch --show-current && git status --porcelain && cat file && echo x > new && git add new && git commit -qm live',
      ],
      { cwd, env },
    );
    const { sandboxes } = JSON.parse((await sally(['agent', 'ls', '--json'])).stdout) as {
      sandboxes: { name: string; workspace?: { path: string } }[];
    };
    for (const one of sandboxes) if (one.workspace?.path === folder) removeAfterwards(one.name);
    expect([ran.code, ran.stdout, ran.stderr]).toEqual([
      0,
      'side\n?? loose\nfirst\n',
      expect.stringContaining(`1 file changed in ${folder}`),
    ]);
    expect(git(cwd, '-c', `safe.directory=${cwd}`, 'log', '-1', '--format=%s', 'side')).toBe('live');
    expect(readFileSync(join(folder, 'loose'), 'utf8')).toBe('of the worktree\n');
    expect(readFileSync(join(cwd, 'file'), 'utf8')).toBe('changed here\n');
  });
});

describe('sally run', () => {
  test('--branch brings the commits back and removes the sandbox, unless something is not committed', async () => {
    const cwd = repository();
    const name = 'agents-git-run';
    const start = ['run', '--name', name, '--branch', 'task', ...gitBox(), '--'];
    removeAfterwards(name);
    const work = 'echo new > new && git add -A && git commit -qm done';
    const ran = await sally([...start, 'sh', '-c', work], { cwd });
    expect(ran).toMatchObject({ code: 0, stdout: '' });
    expect(ran.stderr).toContain(`1 commit of ${name} brought`);
    expect(git(cwd, 'log', '--format=%s', `refs/sallyport/${name}/task`)).toBe('done\nfirst');
    expect((await sally(['inspect', name])).code).toBe(1);
    const loose = await sally([...start, 'touch', 'loose'], { cwd });
    expect(loose.stderr).toContain(`${name} stays`);
    expect((await sally(['fetch', name, '--json'])).stdout).toContain('"loose"');
    expect((await sally(['diff', name, '--name-only'])).stdout).toBe('A\tloose\n');
  });

  test('--worktree works live on the worktree of the branch', async () => {
    const cwd = repository();
    const env = homeWithAgent();
    const call = (branch: string, script: string) =>
      sally(['run', '--branch', branch, '--worktree', ...gitBox(), '--', 'sh', '-c', script], {
        cwd,
        env,
      });
    const folder = join(`${cwd}.worktrees`, 'side');
    git(cwd, 'worktree', 'add', '--quiet', '-b', 'side', folder);
    if (process.getuid?.() === 0) execFileSync('chown', ['-R', '1234:1234', cwd, folder]);
    const ran = await call(
      'side',
      'git branch --show-current && echo x > new && git add new && git commit -qm live',
    );
    expect(ran).toMatchObject({ code: 0, stdout: 'side\n' });
    expect(ran.stderr).toContain(`works on the worktree ${folder}`);
    expect(readFileSync(join(folder, 'new'), 'utf8')).toBe('x\n');
    const safe = ['-c', `safe.directory=${cwd}`];
    expect(git(cwd, ...safe, 'log', '-1', '--format=%s', 'side')).toBe('live');
    const taken = await call('main', 'true');
    expect(taken.code).toBe(125);
    expect(taken.stderr).toContain("checked out in the repository's own folder");
  });
});

describe('sally run --each', () => {
  const boxesOf = async (path: string): Promise<readonly string[]> => {
    const listed = JSON.parse((await sally(['ls', '--json'])).stdout) as {
      readonly sandboxes: readonly {
        readonly name: string;
        readonly workspace?: { readonly path: string };
      }[];
    };
    return listed.sandboxes.filter(({ workspace }) => workspace?.path === path).map(({ name }) => name);
  };

  test('does every task on a branch of its own; one that fails stops no other, and the whole has failed', async () => {
    const cwd = repository();
    writeFileSync(join(cwd, 'tasks.txt'), '# what is to be done\ngood one\nbad; touch evil\n\ngood two\n');
    const script =
      'case "$1" in bad*) exit 7;; esac; echo "$1" > out && git add -A && git commit -qm "$1" && echo ok';
    const each = ['--each', 'tasks.txt', '-j', '2', '--json', '--branch', 'task'];
    const ran = await sally(['run', ...each, ...gitBox(), '--', 'sh', '-c', script, 'agent'], { cwd });
    expect(ran.code).toBe(1);
    const summary = JSON.parse(ran.stdout) as readonly Record<string, unknown>[];
    expect(summary).toMatchObject([
      { number: 1, task: 'good one', state: 'done', exit_code: 0, changes: 1, bytes: 3 },
      { number: 2, task: 'bad; touch evil', state: 'failed', exit_code: 7, changes: 0, bytes: 0 },
      { number: 3, task: 'good two', state: 'done', exit_code: 0, changes: 1, bytes: 3 },
    ]);
    expect(ran.stderr).toContain('2 done, 1 failed, 0 cancelled');
    const refs = git(cwd, 'for-each-ref', '--format=%(refname)', 'refs/sallyport').split('\n');
    expect(refs).toEqual([summary[0]?.['where'], summary[2]?.['where']].sort());
    expect(refs.map((ref) => git(cwd, 'show', `${ref}:out`))).toEqual(['good one', 'good two']);
    expect(await boxesOf(cwd)).toEqual([]);
  });

  test('ends with its sandboxes at Ctrl-C, but for one with what exists nowhere else', async () => {
    const cwd = repository();
    writeFileSync(join(cwd, 'tasks.txt'), 'one\ntwo\nthree\n');
    const script = '[ "$1" != one ] || echo x > loose; touch /tmp/begun; exec sleep 1000';
    const started = startSally(
      [
        'run',
        '--each',
        'tasks.txt',
        '-j',
        '2',
        '--json',
        '--branch',
        'task',
        ...gitBox(),
        '--',
        'sh',
        '-c',
        script,
        'agent',
      ],
      { cwd },
    );
    const begun = async (): Promise<readonly boolean[]> => {
      const names = await boxesOf(cwd);
      const looks = names.map((name) => sally(['exec', name, '--', 'test', '-e', '/tmp/begun']));
      return (await Promise.all(looks)).map(({ code }) => code === 0);
    };
    await expect.poll(begun, { timeout: 120_000 }).toEqual([true, true]);
    started.child.kill('SIGINT');
    const { code, stdout, stderr } = await started.result;
    expect(code).toBe(130);
    expect((JSON.parse(stdout) as readonly { readonly state: string }[]).map(({ state }) => state)).toEqual([
      'cancelled',
      'cancelled',
      'cancelled',
    ]);
    const [kept = '', ...others] = await boxesOf(cwd);
    removeAfterwards(kept);
    expect([others, stderr]).toEqual([[], expect.stringContaining(`${kept} stays`)]);
    expect((await sally(['diff', kept, '--name-only'])).stdout).toBe('A\tloose\n');
    expect(git(cwd, 'for-each-ref', '--format=%(refname)')).toBe('refs/heads/main');
  });

  test('refuses a file without tasks, and needs branches', async () => {
    const cwd = repository();
    writeFileSync(join(cwd, 'none.txt'), '# nothing\n');
    const call = (...args: readonly string[]) => sally(['run', ...args, '--', 'true'], { cwd });
    expect((await call('--each', 'none.txt', '--branch', 'x')).code).toBe(2);
    expect((await call('--each', 'missing.txt', '--branch', 'x')).code).toBe(2);
    expect((await call('--each', 'none.txt')).stderr).toContain('--branch');
    for (const [flag, value] of [
      ['--name', 'mine'],
      ['--workspace-mode', 'copy'],
    ] as const) {
      const refused = await call('--each', 'none.txt', '--branch', 'x', flag, value);
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(flag)]);
    }
    const anew = await sally(['agent', 'claude', '--each', 'none.txt', '--recreate'], { cwd });
    expect([anew.code, anew.stderr]).toEqual([2, expect.stringContaining('--recreate')]);
  });
});
