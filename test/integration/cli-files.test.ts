import { lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { boxForAll, makeBox, newFolder, sally, startSally } from '../support/cli.ts';

const box = boxForAll();

describe('sally cp', () => {
  it('copies a file both ways, by new name and into a folder', async () => {
    const name = box();
    const cwd = await newFolder();
    await writeFile(join(cwd, 'a.txt'), 'content', { mode: 0o640 });
    expect((await sally(['cp', 'a.txt', `${name}:/tmp/b.txt`], { cwd })).code).toBe(0);
    expect((await sally(['cp', 'a.txt', `${name}:/tmp`], { cwd })).code).toBe(0);
    expect((await sally(['exec', name, 'cat', '/tmp/a.txt', '/tmp/b.txt'])).stdout).toBe('contentcontent');
    await mkdir(join(cwd, 'into'));
    expect((await sally(['cp', `${name}:/tmp/b.txt`, 'into'], { cwd })).code).toBe(0);
    expect((await sally(['cp', `${name}:/tmp/b.txt`, 'c.txt'], { cwd })).code).toBe(0);
    expect(await readFile(join(cwd, 'into/b.txt'), 'utf8')).toBe('content');
    expect(await readFile(join(cwd, 'c.txt'), 'utf8')).toBe('content');
  });

  it('copies folders both ways, as a whole and by what is in them', async () => {
    const name = box();
    const cwd = await newFolder();
    await mkdir(join(cwd, 'tree/deep'), { recursive: true });
    await writeFile(join(cwd, 'tree/deep/file'), 'deep');
    await symlink('deep/file', join(cwd, 'tree/link'));
    expect((await sally(['cp', 'tree', `${name}:/tmp`], { cwd })).code).toBe(0);
    expect((await sally(['cp', 'tree/.', `${name}:/tmp`], { cwd })).code).toBe(0);
    const seen = await sally(['exec', name, 'sh', '-c', 'cat /tmp/tree/link /tmp/deep/file']);
    expect(seen.stdout).toBe('deepdeep');
    expect((await sally(['cp', `${name}:/tmp/tree`, 'back'], { cwd })).code).toBe(0);
    expect(await readFile(join(cwd, 'back/deep/file'), 'utf8')).toBe('deep');
    expect(await readlink(join(cwd, 'back/link'))).toBe('deep/file');
  });

  it('takes nothing hostile out: no link out of the target, no device, nothing through a link', async () => {
    const name = box();
    const cwd = await newFolder();
    await writeFile(join(cwd, 'outside'), 'untouched');
    const script = `
      mkdir -p /tmp/t/sub && cd /tmp/t
      ln -s /etc/passwd absolute; ln -s ../../outside up; mkfifo pipe
      echo fine > sub/fine; ln -s sub/fine inside; echo planted > through
    `;
    await sally(['exec', name, 'sh', '-c', script]);
    await mkdir(join(cwd, 'out'));
    // Whoever wrote to the target before may have left a link where a file will come.
    await symlink(join(cwd, 'outside'), join(cwd, 'out/through'));
    const result = await sally(['cp', `${name}:/tmp/t/.`, 'out'], { cwd });
    expect(result.code).toBe(0);
    expect((await readdir(join(cwd, 'out'))).sort()).toEqual(['inside', 'sub', 'through']);
    for (const left of ['absolute', 'up', 'pipe']) expect(result.stderr).toContain(`left out ${left}`);
    expect(await readFile(join(cwd, 'out/through'), 'utf8')).toBe('planted\n');
    expect(await readFile(join(cwd, 'outside'), 'utf8')).toBe('untouched');
  });

  it('[N5] takes no set-id bit out, of a program alone and of a folder of programs', async () => {
    const name = box();
    const cwd = await newFolder();
    // Those that the image has, because none can be made inside.
    const list = 'find /usr/bin -type f -perm /6000 -exec basename {} ";"';
    const programs = (await sally(['exec', name, 'sh', '-c', list])).stdout.split('\n').filter(Boolean);
    expect(programs).toEqual(expect.arrayContaining(['su']));
    expect((await sally(['cp', `${name}:/usr/bin/su`, 'su'], { cwd })).code).toBe(0);
    expect((await lstat(join(cwd, 'su'))).mode & 0o7777).toBe(0o755);
    await mkdir(join(cwd, 'out'));
    expect((await sally(['cp', `${name}:/usr/bin/.`, 'out'], { cwd })).code).toBe(0);
    for (const program of programs)
      expect((await lstat(join(cwd, 'out', program))).mode & 0o111, program).not.toBe(0);
    for (const copied of await readdir(join(cwd, 'out'))) {
      const facts = await lstat(join(cwd, 'out', copied));
      if (!facts.isSymbolicLink()) expect(facts.mode & 0o7000, copied).toBe(0);
    }
  });

  it.each([
    [['a', 'b'], 'neither place is in a sandbox', 2],
    [['x:/a', 'y:/b'], 'both places', 2],
    [['/nowhere/file', 'BOX:/tmp'], 'is not there', 2],
    [['BOX:/nowhere', '.'], 'nowhere', 1],
    [['no-such-box:/tmp', '.'], 'there is no sandbox', 1],
  ])('refuses %j', async (args, message, code) => {
    const name = box();
    const cwd = await newFolder();
    const result = await sally(['cp', ...args.map((arg) => arg.replace('BOX', name))], { cwd });
    expect(result.code).toBe(code);
    expect(result.stderr).toContain(message);
  });
});

describe('sally files', () => {
  it('writes, reads, lists, renames and removes', async () => {
    const name = await makeBox();
    expect((await sally(['files', 'mkdir', '-p', `${name}:/tmp/a/b`])).code).toBe(0);
    expect(
      (await sally(['files', 'write', '--mode', '600', `${name}:/tmp/a/f`], { input: 'one' })).code,
    ).toBe(0);
    expect((await sally(['files', 'write', '--append', `${name}:/tmp/a/f`], { input: ' two' })).code).toBe(0);
    expect((await sally(['files', 'cat', `${name}:/tmp/a/f`])).stdout).toBe('one two');
    expect((await sally(['files', 'ls', `${name}:/tmp/a`])).stdout).toBe('b/\nf\n');
    expect((await sally(['files', 'ls', '-l', `${name}:/tmp/a`])).stdout).toMatch(/-rw------- +\d+:\d+ +7 /);
    expect(JSON.parse((await sally(['files', 'stat', '--json', `${name}:/tmp/a/f`])).stdout)).toMatchObject({
      kind: 'file',
      size: 7,
      mode: 0o600,
    });
    expect((await sally(['files', 'mv', `${name}:/tmp/a/f`, '/tmp/a/g'])).code).toBe(0);
    expect((await sally(['files', 'rm', `${name}:/tmp/a/g`])).code).toBe(0);
    expect((await sally(['files', 'rm', `${name}:/tmp/a`])).code).toBe(1);
    expect((await sally(['files', 'rm', '-r', `${name}:/tmp/a`])).code).toBe(0);
    expect((await sally(['files', 'ls', '--json', `${name}:/tmp`])).stdout).toContain('"entries": []');
  });

  it('begins relative paths where commands start', async () => {
    const name = await makeBox(['-w', '/tmp']);
    await sally(['files', 'write', `${name}:here`], { input: 'x' });
    expect((await sally(['exec', name, 'cat', '/tmp/here'])).stdout).toBe('x');
    expect((await sally(['files', 'ls', name])).stdout).toBe('here\n');
  });

  it('shows no control characters of names that were made inside', async () => {
    const name = box();
    await sally(['exec', name, 'sh', '-c', 'mkdir /tmp/n; touch "$(printf "/tmp/n/a\\033[31mb")"']);
    expect((await sally(['files', 'ls', `${name}:/tmp/n`])).stdout).toBe('a\\u{1b}[31mb\n');
  });

  it('tells changes as they happen', async () => {
    const name = box();
    const watching = startSally(['files', 'watch', '--json', `${name}:/tmp`]);
    await watching.said('"ready"');
    await sally(['exec', name, 'touch', '/tmp/new']);
    await watching.said('"path":"new"');
    watching.child.kill('SIGINT');
    expect((await watching.result).code).toBe(130);
  });

  it.each([
    [['files', 'cat', 'BOX:/nowhere'], 1],
    [['files', 'ls', 'BOX:/nowhere'], 1],
    [['files', 'stat', 'BOX:/nowhere'], 1],
    [['files', 'write', 'BOX:/etc/new'], 1],
    [['files', 'mkdir', 'BOX:/etc/new'], 1],
    [['files', 'mv', 'BOX:/nowhere', '/tmp/x'], 1],
    [['files', 'watch', 'BOX:/nowhere'], 1],
    [['files', 'cat', '/etc/passwd'], 2],
    [['files', 'ls', 'no-such-box:/'], 1],
  ])('refuses %j', async (args, code) => {
    const name = box();
    const result = await sally(args.map((arg) => arg.replace('BOX', name)));
    expect(result.code).toBe(code);
    expect(result.stderr).toMatch(/^sally: /);
  });
});
