import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import {
  chmod,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { executedNames } from '../../src/policy/executed-names.ts';
import { makeBox, newFolder, sally, startSally } from '../support/cli.ts';
import { daemonBetween } from '../support/daemon-between.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { until } from '../support/until.ts';

interface Copied {
  readonly name: string;
  readonly folder: string;
  readonly at: (path: string) => string;
  readonly inside: (script: string) => Promise<void>;
  readonly read: (path: string) => Promise<string>;
}

/** A folder with some files, and a sandbox that works on a copy of it. */
async function copied(prepare: (folder: string) => Promise<void> = async () => {}): Promise<Copied> {
  const folder = await newFolder();
  const at = (path: string): string => join(folder, path);
  await mkdir(at('sub'));
  await writeFile(at('plain.txt'), 'one\ntwo\nthree\n');
  await writeFile(at('gone.txt'), 'going\n');
  await writeFile(at('run.sh'), '#!/bin/sh\n');
  await writeFile(at('sub/deep.txt'), 'deep');
  await symlink('plain.txt', at('link'));
  await prepare(folder);
  const name = await makeBox(['--workspace', folder, '--workspace-mode', 'copy']);
  return {
    name,
    folder,
    at,
    inside: async (script) => {
      const result = await sally(['exec', name, 'sh', '-ec', script]);
      if (result.code !== 0) throw new Error(`inside: ${result.stderr}`);
    },
    read: async (path) => await readFile(at(path), 'utf8'),
  };
}

const everyKind = `
  printf 'one\\n2\\nthree\\nfour\\n' > plain.txt
  rm gone.txt
  chmod +x run.sh
  printf 'deeper' > sub/deep.txt
  mkdir -p new/empty; printf 'new\\n' > new/file
  rm link; ln -s sub/deep.txt link
  printf '\\000\\001binary' > bin
`;

async function names(name: string): Promise<readonly string[]> {
  const { stdout } = await sally(['diff', name, '--name-only']);
  return stdout.split('\n').filter((line) => line !== '');
}

/** The first request for what is inside, after the list: until then nothing is written. */
const fetched = /^GET \S+\/(files|tree)/m;

describe('sally diff', () => {
  it('[O8] shows every kind of change against what was copied in, whatever happened to the folder since', async () => {
    const { name, at, inside } = await copied();
    const nothing = await sally(['diff', name, '--exit-code']);
    expect(nothing).toMatchObject({ code: 0, stdout: '', stderr: '' });
    await inside(everyKind);
    await writeFile(at('plain.txt'), 'of the host\n');
    const patch = await sally(['diff', name]);
    expect(patch.code).toBe(0);
    expect(patch.stdout).toContain('@@ -1,3 +1,4 @@\n one\n-two\n+2\n three\n+four\n');
    expect(patch.stdout).toContain('diff --git a/gone.txt b/gone.txt\ndeleted file mode 100644\n');
    expect(patch.stdout).toContain('diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n');
    expect(patch.stdout).toContain(
      '-deep\n\\ No newline at end of file\n+deeper\n\\ No newline at end of file\n',
    );
    expect(patch.stdout).toContain('new file mode 100644\n');
    expect(patch.stdout).toContain('GIT binary patch\nliteral 8\n');
    expect(await names(name)).toEqual([
      'A\tbin',
      'D\tgone.txt',
      'M\tlink',
      'A\tnew/',
      'A\tnew/empty/',
      'A\tnew/file',
      'M\tplain.txt',
      'M\trun.sh',
      'M\tsub/deep.txt',
    ]);
    expect((await sally(['diff', name, '--exit-code', '--stat'])).code).toBe(1);
    expect((await sally(['diff', name, '--stat', 'plain.txt'])).stdout).toContain('1 file, +2 -1');
    const json = JSON.parse((await sally(['diff', name, '--json', 'sub'])).stdout);
    expect(json.changes).toEqual([
      expect.objectContaining({
        path: 'sub/deep.txt',
        change: 'changed',
        before: expect.objectContaining({ kind: 'file', size: 4, kept: true }),
        after: expect.objectContaining({ kind: 'file', size: 6 }),
      }),
    ]);
  });

  it('says where to look for a sandbox that works on the folder itself, or on none', async () => {
    const folder = await newFolder();
    const live = await makeBox(['--workspace', folder]);
    const result = await sally(['diff', live]);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain(`git -C ${folder} diff`);
    expect((await sally(['apply', await makeBox()])).stderr).toContain('has no copied workspace');
  });

  it('gives a terminal nothing to obey, and a pipe every byte', async () => {
    const { name, inside, folder } = await copied();
    await inside(`printf 'a\\033[31mb\\n' > "$(printf 'n\\033[2Jx')"`);
    const piped = await sally(['diff', name]);
    expect(piped.stdout).toContain('+a\u001b[31mb\n');
    expect(piped.stdout).toContain('"b/n\\033[2Jx"');
    const line = `script -qec "node dist/cli/sally.cjs diff ${name}" /dev/null`;
    const shown = await sally(['-c', line], {
      command: ['sh'],
      cwd: process.cwd(),
      env: { TERM: 'dumb', NO_COLOR: '1' },
    });
    expect(shown.stdout).toContain('+a\\u{1b}[31mb');
    expect(shown.stdout).not.toContain('\u001b[31mb');
    expect(shown.stdout).not.toContain('\u001b[2J');
    expect(await readdir(folder)).toHaveLength(5);
  });
});

describe('sally apply', () => {
  it('[O8] brings every kind of change back, once, and counts it as copied in from then on', async () => {
    const { name, at, inside, read, folder } = await copied(async (path) => {
      await chmod(join(path, 'run.sh'), 0o640);
    });
    await inside(everyKind);
    const dry = await sally(['apply', name, '--dry-run']);
    expect(dry.stdout).toContain('M\tplain.txt');
    expect(await read('plain.txt')).toBe('one\ntwo\nthree\n');
    expect((await sally(['rm', name])).stderr).toContain(`sally apply ${name}`);
    const applied = await sally(['apply', name]);
    expect(applied).toMatchObject({ code: 0 });
    expect(await read('plain.txt')).toBe('one\n2\nthree\nfour\n');
    expect(existsSync(at('gone.txt'))).toBe(false);
    expect((await lstat(at('run.sh'))).mode & 0o7777).toBe(0o750);
    expect(await readlink(at('link'))).toBe('sub/deep.txt');
    expect(await readdir(at('new'))).toEqual(['empty', 'file']);
    expect((await readFile(at('bin'))).toString('latin1')).toBe('\0\u0001binary');
    expect((await readdir(folder)).filter((each) => each.startsWith('.sallyport'))).toEqual([]);
    expect((await sally(['diff', name, '--exit-code'])).code).toBe(0);
    const again = await sally(['apply', name, '--json']);
    expect(JSON.parse(again.stdout)).toMatchObject({ applied: true, written: [], same: [], conflicts: [] });
    // What changes next is measured against what was brought back.
    await inside('echo five >> plain.txt');
    expect((await sally(['diff', name])).stdout).toContain('@@ -2,3 +2,4 @@\n 2\n three\n four\n+five\n');
    expect((await sally(['apply', name])).code).toBe(0);
    expect(await read('plain.txt')).toBe('one\n2\nthree\nfour\nfive\n');
    expect((await sally(['rm', name])).code).toBe(0);
  });

  it('brings back what changes its kind: files, links and folders in each other’s place', async () => {
    const { name, at, inside, read } = await copied(async (path) => {
      await mkdir(join(path, 'tree/below'), { recursive: true });
      await writeFile(join(path, 'tree/below/x'), 'x');
    });
    await inside(`rm -r tree; echo file > tree
      rm gone.txt; mkdir gone.txt; echo y > gone.txt/y
      rm link; mkdir link; echo z > link/z
      rm plain.txt; ln -s run.sh plain.txt
      rm -r sub; ln -s tree sub`);
    expect(await sally(['apply', name])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('brought to'),
    });
    expect(await read('tree')).toBe('file\n');
    expect(await read('gone.txt/y')).toBe('y\n');
    expect(await read('link/z')).toBe('z\n');
    expect(await readlink(at('plain.txt'))).toBe('run.sh');
    expect(await readlink(at('sub'))).toBe('tree');
    expect(await names(name)).toEqual([]);
  });

  it('writes nothing at all where the folder changed as well, and says what each side did', async () => {
    const { name, at, inside, read } = await copied(async (path) => {
      await mkdir(join(path, 'full'));
      await writeFile(join(path, 'full/old'), 'old');
    });
    await inside(`echo in > plain.txt; echo in > run.sh; echo in > both; rm gone.txt
      echo in > sub/deep.txt; rm -r full; echo file > full; echo fine > fine`);
    await writeFile(at('plain.txt'), 'host\n');
    await rm(at('run.sh'));
    await writeFile(at('both'), 'host\n');
    await writeFile(at('gone.txt'), 'host\n');
    await rename(at('sub'), at('elsewhere'));
    await symlink('elsewhere', at('sub'));
    await writeFile(at('full/more'), 'more');
    const result = await sally(['apply', name]);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    const rows = [
      /both +added a file +added a file +yes/,
      /full +has "full\/more" in it +became a file +no/,
      /gone.txt +changed +removed +yes/,
      /plain.txt +changed +changed +yes/,
      /run.sh +removed +changed +yes/,
      /sub\/deep.txt +"sub" is a link, or no folder +changed +no/,
    ];
    for (const row of rows) expect(result.stderr).toMatch(row);
    for (const way of ['--skip-conflicts', '--force', '--patch', '--as-branch'])
      expect(result.stderr).toContain(way);
    expect(existsSync(at('fine'))).toBe(false);
    expect(existsSync(at('full/old'))).toBe(true);
    // Not even force writes through a link, or over a folder with other things in it.
    expect((await sally(['apply', name, '--force'])).code).toBe(1);
    expect(await read('plain.txt')).toBe('host\n');
    expect((await sally(['apply', name, '--skip-conflicts'])).code).toBe(1);
    expect(await read('fine')).toBe('fine\n');
    expect(await read('plain.txt')).toBe('host\n');
    expect(await read('elsewhere/deep.txt')).toBe('deep');
    expect(await names(name)).not.toContain('A\tfine');
    await rm(at('sub'));
    await rename(at('elsewhere'), at('sub'));
    await rm(at('full/more'));
    expect(await sally(['apply', name, '--force'])).toMatchObject({ code: 0 });
    expect(await read('plain.txt')).toBe('in\n');
    expect(await read('full')).toBe('file\n');
    expect(await names(name)).toEqual([]);
  });

  it('takes nothing hostile out: no path out of the folder, no set-id bit, no pipe, nothing through a link', async () => {
    const { name, folder, at, inside } = await copied(async (path) => {
      await chmod(join(path, 'run.sh'), 0o6755);
    });
    expect((await lstat(at('run.sh'))).mode & 0o7777).toBe(0o6755);
    const outside = await newFolder();
    await writeFile(join(outside, 'target'), 'untouched');
    await inside(`ln -s /etc/passwd absolute; ln -s ../../x up; ln -s sub/../../x sly; mkfifo pipe
      echo x > new; chmod 777 new; ! chmod 6777 new; echo more >> run.sh; rm -r sub; mkdir sub; echo through > sub/target
      touch "$(printf 'a\\nb')" "$(printf '\\377\\376')"; mkdir .sallyport-apply-1-x; touch .sallyport-apply-1-x/f`);
    await rm(at('sub'), { recursive: true });
    await symlink(outside, at('sub'));
    const result = await sally(['apply', name, '--skip-conflicts']);
    for (const left of ['absolute', 'up', 'sly', 'pipe', '.sallyport-apply-1-x'])
      expect(result.stderr).toContain(`left out ${left}`);
    expect(result.stderr).toContain('"sub" is a link');
    // None can be made inside; that of a file here does not survive what is written to it.
    expect((await lstat(at('new'))).mode & 0o7777).toBe(0o755 & ~process.umask());
    expect((await lstat(at('run.sh'))).mode & 0o7777).toBe(0o755);
    expect(await readFile(join(outside, 'target'), 'utf8')).toBe('untouched');
    const found = (await readdir(folder, { encoding: 'buffer' }))
      .map((each) => each.toString('latin1'))
      .sort();
    expect(found).toEqual(['a\nb', 'gone.txt', 'link', 'new', 'plain.txt', 'run.sh', 'sub', '\u00ff\u00fe']);
    expect((await sally(['apply', name, '--skip-conflicts', '--keep-links'])).code).toBe(1);
    expect(await readlink(at('absolute'))).toBe('/etc/passwd');
  });

  it('leaves out what this machine executes unasked, until it is named', async () => {
    const { name, at, inside, read } = await copied();
    await inside(`mkdir -p .git/hooks .vscode deep/.claude; echo evil > .git/hooks/pre-commit; echo evil > .vscode/tasks.json
      echo evil > .envrc; echo evil > sallyport.yaml; echo evil > deep/.claude/settings.json; echo fine > fine; echo evil > .EnvRC`);
    const result = await sally(['apply', name]);
    expect(result.code).toBe(0);
    expect(await readdir(at('.'))).toEqual([
      'deep',
      'fine',
      'gone.txt',
      'link',
      'plain.txt',
      'run.sh',
      'sub',
    ]);
    expect(await readdir(at('deep'))).toEqual([]);
    expect(result.stderr).toContain('left out .git/hooks/pre-commit');
    expect(result.stderr).toContain('--include-protected');
    expect((await sally(['rm', name])).code).toBe(1);
    expect((await sally(['apply', name, '--include-protected', '.envrc'])).code).toBe(0);
    expect(await read('.envrc')).toBe('evil\n');
    expect(existsSync(at('sallyport.yaml'))).toBe(false);
  });

  it('[N5] leaves out every name that this machine executes, at any depth, and brings the one that is named', async () => {
    const { name, at, inside, read } = await copied();
    const names = executedNames.map(({ name: pattern }) => pattern.replaceAll('*', 'x'));
    const places = names.flatMap((place) => [place, `deep/${place}`]);
    await inside(
      `for f in ${places.join(' ')} fine deep/fine; do mkdir -p "$(dirname "$f")"; echo evil > "$f"; done`,
    );
    const result = await sally(['apply', name]);
    expect(result.code, result.stderr).toBe(0);
    expect(places.filter((place) => existsSync(at(place)))).toEqual([]);
    expect(await read('deep/fine')).toBe('evil\n');
    const leftOut = new Set(
      result.stderr.split('\n').map((line) => /left out (\S+?):? /.exec(`${line} `)?.[1]),
    );
    expect(places.filter((place) => !leftOut.has(place))).toEqual([]);
    expect((await sally(['apply', name, '--include-protected', 'deep/.npmrc'])).code).toBe(0);
    expect(places.filter((place) => existsSync(at(place)))).toEqual(['deep/.npmrc']);
  });

  it('[N5] brings no git directory back, whatever its folder is called and whatever of it is here already', async () => {
    const { name, at, inside } = await copied(async (folder) => {
      await mkdir(join(folder, 'half/refs/heads'), { recursive: true });
      await mkdir(join(folder, 'half/objects'));
      await writeFile(join(folder, 'half/refs/heads/x'), '');
      await writeFile(join(folder, 'half/objects/x'), '');
      await mkdir(join(folder, 'whole/refs/heads'), { recursive: true });
      await mkdir(join(folder, 'whole/objects'));
      await writeFile(join(folder, 'whole/HEAD'), 'ref: refs/heads/main');
    });
    const marker = at('ran');
    const config = `[core]\\n repositoryformatversion = 0\\n bare = false\\n worktree = .\\n fsmonitor = "touch ${marker}; false"\\n`;
    await inside(`for place in . bare; do mkdir -p $place/objects $place/refs/heads; echo x > $place/refs/heads/x; echo x > $place/objects/x; done
      for place in . bare half; do echo 'ref: refs/heads/main' > $place/HEAD; printf '${config}' > $place/config; echo fine > $place/fine; done
      mkdir -p led; echo 'ref: refs/heads/main' > led/HEAD; echo ../bare > led/commondir; mkdir -p plain; echo x > plain/HEAD; echo x > plain/config
      for place in whole plain; do mkdir -p $place/rebase-merge; echo 'exec x' > $place/rebase-merge/git-rebase-todo; done`);
    const status = (): void => {
      for (const place of ['.', 'bare', 'half', 'led'])
        spawnSync('git', ['-c', 'safe.directory=*', 'status'], {
          cwd: at(place),
          env: { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' },
        });
    };
    const result = await sally(['apply', name]);
    expect(result.code).toBe(0);
    for (const path of ['HEAD', 'config', 'bare/HEAD', 'half/HEAD', 'half/config', 'led/HEAD']) {
      expect(result.stderr).toContain(`left out ${path}: git would take its folder for a git directory`);
      expect(existsSync(at(path))).toBe(false);
    }
    expect(result.stderr).toContain('left out whole/rebase-merge/git-rebase-todo: git would take its folder');
    expect(existsSync(at('whole/rebase-merge'))).toBe(false);
    const others = ['plain/HEAD', 'plain/config', 'plain/rebase-merge/git-rebase-todo'];
    for (const path of ['fine', 'bare/fine', 'half/fine', ...others])
      expect(existsSync(at(path)), path).toBe(true);
    status();
    expect(existsSync(marker)).toBe(false);
    const patch = await sally(['apply', name, '--patch', '-']);
    expect(patch.stdout).not.toContain('half/HEAD');
    // The same files, once somebody asked for them.
    const all = ['HEAD', 'objects', 'refs', 'config'].flatMap((path) => ['--include-protected', path]);
    expect((await sally(['apply', name, ...all])).code).toBe(0);
    status();
    expect(existsSync(marker)).toBe(true);
  });

  it('refuses a file that changes inside between the list and the fetch, and has written nothing', async () => {
    const { name, at, inside } = await copied();
    await inside('for i in 1 2 3; do echo $i > new$i; done; rm gone.txt');
    const state = await daemonBetween(fetched, () => inside('echo more >> new3'));
    const result = await sally(['apply', name], { env: { SALLYPORT_STATE_DIR: state } });
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain('"new3" changed inside while it was read');
    expect((await readdir(at('.'))).sort()).toEqual(['gone.txt', 'link', 'plain.txt', 'run.sh', 'sub']);
  });

  it.each([
    ['the folder of a file', 'sub', 'sub/deep.txt'],
    ['a file', 'plain.txt', 'plain.txt'],
  ])(
    'finds %s that was swapped for a link since it was looked at, and has written nothing',
    async (_what, swapped, named) => {
      const { name, at, inside, read } = await copied();
      const outside = await newFolder();
      await writeFile(join(outside, 'deep.txt'), 'untouched');
      await inside('echo in > plain.txt; echo in > sub/deep.txt; rm gone.txt; echo in > added');
      const state = await daemonBetween(fetched, async () => {
        await rename(at(swapped), at('moved'));
        await symlink(swapped === 'sub' ? outside : join(outside, 'deep.txt'), at(swapped));
      });
      const result = await sally(['apply', name], { env: { SALLYPORT_STATE_DIR: state } });
      expect(result).toMatchObject({ code: 1, stdout: '' });
      expect(result.stderr).toContain(
        `"${named}" changed here while it was fetched, and nothing was written`,
      );
      expect(await readFile(join(outside, 'deep.txt'), 'utf8')).toBe('untouched');
      expect(await readdir(outside)).toEqual(['deep.txt']);
      expect(await read('gone.txt')).toBe('going\n');
      expect(existsSync(at('added'))).toBe(false);
      expect((await readdir(at('.'))).filter((each) => each.startsWith('.sallyport'))).toEqual([]);
      // As it was, it goes on.
      await rm(at(swapped));
      await rename(at('moved'), at(swapped));
      expect((await sally(['apply', name])).code).toBe(0);
      expect(await read('sub/deep.txt')).toBe('in\n');
    },
  );

  it('takes nothing from elsewhere while a program inside swaps a folder for a link, and is right when it rests', async () => {
    const { name, folder, at, inside } = await copied();
    // More than are fetched one by one.
    await inside('mkdir d && for i in $(seq 1 300); do echo new > d/f$i; done');
    const swap = `echo begun; until [ -e /tmp/stop ]; do
      mv d d.real; ln -s /etc d; echo $((n += 1)) > swaps; rm d; mv d.real d; done`;
    const swapping = startSally(['exec', name, 'sh', '-ec', swap]);
    await swapping.said('begun');
    for (let turn = 0; turn < 4; turn++) {
      const { code } = await sally(['apply', name]);
      expect([0, 1]).toContain(code);
      const there = execFileSync('find', [
        folder,
        '-type',
        'f',
        '-path',
        '*/d*/*',
        '-not',
        '-name',
        'f[0-9]*',
      ]);
      expect(there.toString()).toBe('');
      expect(existsSync(at('d')) && (await lstat(at('d'))).isSymbolicLink()).toBe(false);
    }
    await inside('touch /tmp/stop');
    expect((await swapping.result).code).toBe(0);
    expect((await sally(['apply', name])).code).toBe(0);
    expect(await names(name)).toEqual([]);
    const all = execFileSync('sh', ['-c', 'cat "$0"/d/f* | sort | uniq -c', folder], { encoding: 'utf8' });
    expect(all.trim()).toBe('300 new');
  });

  it('goes to another folder by the same rules, and then still counts as not brought back', async () => {
    const { name, inside, read } = await copied();
    await inside(everyKind);
    const other = await newFolder();
    const first = await sally(['apply', name, '--to', other]);
    // There is nothing there of what was changed or removed.
    expect(first.code).toBe(1);
    expect((await sally(['apply', name, '--to', other, '--force'])).code).toBe(0);
    expect(await readFile(join(other, 'plain.txt'), 'utf8')).toBe('one\n2\nthree\nfour\n');
    expect(await read('plain.txt')).toBe('one\ntwo\nthree\n');
    expect(JSON.parse((await sally(['apply', name, '--to', other, '--json'])).stdout)).toMatchObject({
      written: [],
    });
    expect(await names(name)).toContain('M\tplain.txt');
    expect((await sally(['apply', name, '--to', join(other, 'nowhere')])).stderr).toContain(
      'there is no folder',
    );
  });

  it('is cancelled by Ctrl-C before anything is written, and finished by the next call', async () => {
    const { name, at, inside } = await copied();
    // More than one request can tell of as brought back.
    await inside('for i in $(seq 1 3600); do echo $i > many$i; done; rm gone.txt');
    const before = await readdir(at('.'));
    for (const [signal, code] of [
      ['SIGINT', 130],
      ['SIGKILL', null],
    ] as const) {
      const state = await daemonBetween(fetched, () => void applying.child.kill(signal));
      const applying = startSally(['apply', name], { env: { SALLYPORT_STATE_DIR: state } });
      const result = await applying.result;
      expect(result.code).toBe(code);
      if (code !== null) expect(result.stderr).toContain('nothing was written');
      const left = (await readdir(at('.'))).filter((each) => !each.startsWith('.sallyport'));
      expect(left).toEqual(before);
    }
    // A killed one cleans up nothing: the next one does.
    expect((await readdir(at('.'))).filter((each) => each.startsWith('.sallyport'))).toHaveLength(1);
    expect((await sally(['apply', name])).code).toBe(0);
    const after = await readdir(at('.'));
    expect(after.filter((each) => each.startsWith('many'))).toHaveLength(3600);
    expect(after.filter((each) => each.startsWith('.sallyport'))).toEqual([]);
    expect(existsSync(at('gone.txt'))).toBe(false);
    expect(await names(name)).toEqual([]);
  });

  it('is done to the end after Ctrl-C when something was written already, and says so', async () => {
    const { name, inside, read, at } = await copied();
    await inside('echo in > plain.txt; rm gone.txt');
    const state = await daemonBetween(
      /^PUT \S+\/changes\/brought-back /m,
      () => void applying.child.kill('SIGINT'),
    );
    const applying = startSally(['apply', name], { env: { SALLYPORT_STATE_DIR: state } });
    const result = await applying.result;
    expect(result).toMatchObject({ code: 130, stdout: 'D\tgone.txt\nM\tplain.txt\n' });
    expect(result.stderr).toContain('it was done to the end');
    expect(await read('plain.txt')).toBe('in\n');
    expect(existsSync(at('gone.txt'))).toBe(false);
    expect(await names(name)).toEqual([]);
  });

  it.each([
    [['--patch', 'x', '--to', '.'], 'different ways'],
    [['--force', '--skip-conflicts'], 'contradict'],
    [['--patch', 'x', '--force'], 'about a folder'],
  ])('refuses %j', async (args, message) => {
    const result = await sally(['apply', 'any', ...args]);
    expect(result).toMatchObject({ code: 2 });
    expect(result.stderr).toContain(message);
  });
});

describe.runIf(requirement('git', commandExists('git')))('with git', () => {
  const git = (cwd: string, ...args: readonly string[]): string =>
    execFileSync('git', ['-c', 'safe.directory=*', ...args], { cwd, encoding: 'utf8', stdio: 'pipe' });

  async function repository(): Promise<Copied & { readonly home: string }> {
    const home = await newFolder('own');
    await writeFile(
      join(home, '.gitconfig'),
      '[user]\nname = Somebody\nemail = some@body\n[safe]\ndirectory = *\n',
    );
    const box = await copied(async (folder) => {
      git(folder, 'init', '-q', '-b', 'trunk');
      await writeFile(join(folder, '.gitignore'), 'ignored\n');
      git(folder, 'add', '-A');
      git(folder, '-c', 'user.name=a', '-c', 'user.email=b', 'commit', '-qm', 'first');
    });
    return { ...box, home };
  }

  it('writes a patch that git applies to what was copied', async () => {
    const { name, inside, folder } = await repository();
    await inside(`${everyKind}
printf 'x' > "$(printf 'odd\\n\\377"name')"`);
    const other = await newFolder('own');
    git(other, 'clone', '-q', folder, 'clone');
    const clone = join(other, 'clone');
    expect((await sally(['apply', name, '--patch', 'all.patch'], { cwd: other })).code).toBe(0);
    git(clone, 'apply', '../all.patch');
    expect(await readFile(join(clone, 'plain.txt'), 'utf8')).toBe('one\n2\nthree\nfour\n');
    expect((await readFile(join(clone, 'bin'))).toString('latin1')).toBe('\0\u0001binary');
    expect(git(clone, 'status', '--short', '-z')).toContain('odd\n\ufffd"name');
    expect((await sally(['apply', name, '--patch', '-'])).stdoutBytes).toEqual(
      await readFile(join(other, 'all.patch')),
    );
  });

  it('[O8] makes a commit on a new branch, and neither touches the work tree nor runs anything of the repository', async () => {
    const { name, inside, folder, at, home } = await repository();
    const trap = at('.git/trap');
    for (const hook of ['reference-transaction', 'post-index-change', 'pre-commit']) {
      await writeFile(at(`.git/hooks/${hook}`), `#!/bin/sh\necho ran >> ${trap}\n`, { mode: 0o755 });
    }
    git(folder, 'config', 'filter.trap.clean', `sh -c 'echo ran >> ${trap}; cat'`);
    git(folder, 'config', 'core.fsmonitor', `sh -c 'echo ran >> ${trap}'`);
    await writeFile(at('.git/info/attributes'), '* filter=trap\n');
    await inside(`${everyKind}
echo out > ignored`);
    await writeFile(at('plain.txt'), 'uncommitted\n');
    const before = await readFile(at('.git/index'));
    const env = { HOME: home };
    const made = await sally(['apply', name, '--as-branch', 'from-box'], { env });
    expect(made).toMatchObject({
      code: 0,
      stdout: 'from-box\n',
      stderr: expect.stringContaining('left out ignored'),
    });
    expect(made.stderr).toContain('left out ignored: git ignores it');
    expect(existsSync(trap)).toBe(false);
    expect(await readFile(at('.git/index'))).toEqual(before);
    expect(await readFile(at('plain.txt'), 'utf8')).toBe('uncommitted\n');
    const quiet = ['-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null'];
    expect(git(folder, ...quiet, 'show', '--format=%an %P', '--name-status', 'from-box').split('\n')).toEqual(
      [
        `Somebody ${git(folder, ...quiet, 'rev-parse', 'trunk').trim()}`,
        '',
        'A\tbin',
        'D\tgone.txt',
        'M\tlink',
        'A\tnew/file',
        'M\tplain.txt',
        'M\trun.sh',
        'M\tsub/deep.txt',
        '',
      ],
    );
    expect(git(folder, ...quiet, 'show', 'from-box:plain.txt')).toBe('one\n2\nthree\nfour\n');
    const again = await sally(['apply', name, '--as-branch', 'from-box'], { env });
    expect(again.code).toBe(1);
    expect(again.stderr).toContain('there is a branch from-box already');
    expect((await sally(['apply', name, '--as-branch', '-x'], { env })).code).not.toBe(0);
    expect((await sally(['apply', name, '--as-branch', 'a..b'], { env })).stderr).toContain(
      'no name for a branch',
    );
  });

  it.each([
    ['the first signal, which ends git as well', 'exec tail -f /dev/null', ['SIGINT'], 130],
    [
      'the second one, where git does not obey',
      'trap "" TERM; exec tail -f /dev/null',
      ['SIGINT', 'SIGTERM'],
      143,
    ],
  ] as const)('leaves no file and no branch behind at %s', async (_when, waits, signals, code) => {
    const { name, inside, home, folder } = await repository();
    await inside('echo in > plain.txt');
    const own = await newFolder('own');
    const [bin, temporary, pid] = [join(own, 'bin'), join(own, 'tmp'), join(own, 'pid')];
    await Promise.all([mkdir(bin), mkdir(temporary)]);
    const path = process.env['PATH'] ?? '';
    const script = `#!/bin/sh
case "$*" in *hash-object*) echo $$ > ${pid}.new; mv ${pid}.new ${pid}; ${waits};; esac
PATH=${path} exec git "$@"
`;
    await writeFile(join(bin, 'git'), script, { mode: 0o755 });
    const env = { HOME: home, PATH: `${bin}:${path}`, TMPDIR: temporary };
    const applying = startSally(['apply', name, '--as-branch', 'from-box'], { env });
    await until(async () => existsSync(pid));
    const waiting = await readFile(pid, 'utf8');
    onTestFinished(() => void spawnSync('kill', ['-KILL', waiting.trim()]));
    expect(await readdir(temporary)).toEqual([expect.stringContaining('sallyport-branch-')]);
    for (const signal of signals) applying.child.kill(signal);
    expect(await applying.result).toMatchObject({ code });
    expect(await readdir(temporary)).toEqual([]);
    expect(git(folder, 'branch', '--list', 'from-box')).toBe('');
  });
});
