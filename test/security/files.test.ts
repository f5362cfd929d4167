/**
 * Files into a sandbox and out of it, against a hostile inside: the lines of BYPASSES "Files", each beside the same act where
 * it is allowed. SECURITY.md has the list of which test proves which line.
 */

import { execFileSync } from 'node:child_process';
import { link, lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { frameType } from '../../src/porter/frame.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';
import { isSallyportError } from '../../src/protocol/errors.ts';
import type { Sandbox } from '../../src/sdk/sandbox.ts';
import { writeTree } from '../../src/sdk/write-tree.ts';
import { makeBox, newFolder, sally } from '../support/cli.ts';
import { testDaemon } from '../support/daemon.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { makeSandbox, rawRequest } from '../support/daemon-world.ts';
import { frame, lyingPorter } from '../support/lying-porter.ts';

/** Everything below a folder, with the content of its files, as one text. */
const everythingIn = (folder: string): string =>
  execFileSync('sh', ['-c', 'find . -type f -exec cat {} + ; find . -printf "%y %p %l\\n"'], {
    cwd: folder,
    encoding: 'latin1',
    maxBuffer: 2 ** 28,
  });

describe('a path', () => {
  it('is one of the sandbox, however it is written: .., /proc/self/root, /proc/1/root', async () => {
    const folder = await newFolder('own');
    await writeFile(join(folder, 'secret'), 'of the host');
    const daemon = await testDaemon();
    const box = await daemon.make();
    const ways = ['', '/proc/self/root', '/proc/self/cwd/../../../..', '/tmp/../../../..', '/proc/1/root'];
    for (const way of ways) {
      const read = box.files.read(`${way}${folder}/secret`);
      await expect(read, way).rejects.toMatchObject({ kind: expect.stringMatching(/not_found|permission/) });
    }
    await box.files.mkdir(folder, { parents: true });
    await box.files.write(`${folder}/secret`, 'of the sandbox');
    // The first process of the sandbox hides its root, also from its own neighbours.
    for (const way of ways.slice(0, -1))
      expect(await box.files.readText(`${way}${folder}/secret`), way).toBe('of the sandbox');
    expect(await readFile(join(folder, 'secret'), 'utf8')).toBe('of the host');
  });

  it('that is relative, empty, too long or has a NUL is refused by the daemon, and by the SDK', async () => {
    const home = await daemonHome();
    const daemon = await home.start();
    const box = await makeSandbox(daemon);
    await box.files.write('/tmp/ab', 'x');
    const at = `/v1/sandboxes/${box.id}/files`;
    const status = async (path: string): Promise<number> =>
      (await rawRequest(home, 'GET', `${at}/stat?path=${path}`)).status;
    expect(await status('%2Ftmp%2Fab')).toBe(200);
    const long = `/${'a'.repeat(5000)}`;
    for (const path of ['tmp/ab', '..%2Ftmp%2Fab', '', '%2Ftmp%2Fa%00b', long])
      expect(await status(path), path).toBe(400);
    for (const path of ['tmp/ab', '', '/tmp/a\0b', long]) {
      const invalid = { kind: 'invalid' };
      await expect(box.files.read(path), path).rejects.toMatchObject(invalid);
      await expect(box.files.write(path, 'x'), path).rejects.toMatchObject(invalid);
      await expect(box.files.mkdir(path), path).rejects.toMatchObject(invalid);
      await expect(box.files.remove(path, { recursive: true }), path).rejects.toMatchObject(invalid);
      await expect(box.files.rename('/tmp/ab', path), path).rejects.toMatchObject(invalid);
    }
    expect(await box.files.readText('/tmp/ab')).toBe('x');
  });

  it('that begins with a dash is a name and never an option, both ways', async () => {
    const name = await makeBox(['-w', '/tmp']);
    const cwd = await newFolder();
    await writeFile(join(cwd, '-rf'), 'dash');
    expect((await sally(['cp', '--', '-rf', `${name}:-rf`], { cwd })).code).toBe(0);
    expect((await sally(['exec', name, 'cat', '/tmp/-rf'])).stdout).toBe('dash');
    await mkdir(join(cwd, 'out'));
    expect((await sally(['cp', `${name}:-rf`, 'out'], { cwd })).code).toBe(0);
    expect(await readFile(join(cwd, 'out/-rf'), 'utf8')).toBe('dash');
    expect((await sally(['files', 'rm', `${name}:-rf`])).code).toBe(0);
    expect((await sally(['files', 'ls', `${name}:/tmp`])).stdout).toBe('');
    // Without the two dashes it is taken for options, and nothing is done.
    expect((await sally(['cp', '-rf', `${name}:-rf`], { cwd })).code).toBe(2);
  });

  it('whose last part goes up names no copy', async () => {
    const name = await makeBox(['-w', '/tmp']);
    const cwd = await newFolder();
    await mkdir(join(cwd, 'into'));
    await sally(['exec', name, 'sh', '-c', 'mkdir -p /tmp/a/b && touch /tmp/a/f']);
    const up = await sally(['cp', `${name}:/tmp/a/b/..`, 'into'], { cwd });
    expect(up).toMatchObject({ code: 2 });
    expect(await readdir(cwd)).toEqual(['into']);
    expect((await sally(['cp', `${name}:/tmp/a`, 'into'], { cwd })).code).toBe(0);
    expect((await readdir(join(cwd, 'into/a'))).sort()).toEqual(['b', 'f']);
  });
});

describe('links', () => {
  it('that dangle, chain or go round are told, and lead a copy of a tree nowhere', async () => {
    const daemon = await testDaemon();
    const box = await daemon.make();
    const out = await newFolder('own');
    await box.sh(
      `mkdir -p /tmp/t/d && cd /tmp/t && echo content > d/file && ln -s two one && ln -s d/file two && ln -s nowhere dangling
       ln -s round2 round1 && ln -s round1 round2 && ln -s d/../../../etc/passwd inner && ln -s ../../etc/passwd up && ln -s /etc abs`,
      { check: true },
    );
    expect(await box.files.readText('/tmp/t/one')).toBe('content\n');
    await expect(box.files.read('/tmp/t/dangling')).rejects.toMatchObject({ code: 'file_not_found' });
    await expect(box.files.read('/tmp/t/round1')).rejects.toMatchObject({ code: 'file_invalid' });
    const { skipped } = await box.files.download('/tmp/t', join(out, 't'));
    expect(skipped.map(({ path }) => path).sort()).toEqual(['abs', 'inner', 'up']);
    expect((await readdir(join(out, 't'))).sort()).toEqual([
      'd',
      'dangling',
      'one',
      'round1',
      'round2',
      'two',
    ]);
    expect(await readFile(join(out, 't/one'), 'utf8')).toBe('content\n');
    expect(await readlink(join(out, 't/dangling'))).toBe('nowhere');
  });

  it('that are hard, inside or at the target, are two files afterwards, and nobody else’s changes', async () => {
    const daemon = await testDaemon();
    const box = await daemon.make();
    const host = await newFolder('own');
    await box.sh('mkdir /tmp/t && cd /tmp/t && echo new > a && ln a b && chmod 600 a', { check: true });
    await mkdir(join(host, 'out'));
    await writeFile(join(host, 'outside'), 'kept', { mode: 0o644 });
    await link(join(host, 'outside'), join(host, 'out/a'));
    await box.files.download('/tmp/t', join(host, 'out'));
    expect(await readFile(join(host, 'outside'), 'utf8')).toBe('kept');
    expect((await lstat(join(host, 'outside'))).mode & 0o777).toBe(0o644);
    for (const name of ['a', 'b']) {
      expect(await readFile(join(host, 'out', name), 'utf8')).toBe('new\n');
      expect((await lstat(join(host, 'out', name))).nlink).toBe(1);
    }
    // And one file alone.
    await link(join(host, 'outside'), join(host, 'single'));
    await box.files.download('/tmp/t/a', join(host, 'single'));
    expect(await readFile(join(host, 'single'), 'utf8')).toBe('new\n');
    expect(await readFile(join(host, 'outside'), 'utf8')).toBe('kept');
  });
});

describe('what is no file', () => {
  it('stays inside: devices, pipes and sockets are left out and named', async () => {
    const name = await makeBox();
    const cwd = await newFolder();
    const make = `import os, socket; os.makedirs('/tmp/t'); os.mkfifo('/tmp/t/fifo'); open('/tmp/t/file', 'w').write('x')
socket.socket(socket.AF_UNIX).bind('/tmp/t/socket')`;
    expect((await sally(['exec', name, 'python3', '-c', make])).code).toBe(0);
    const made = await sally(['cp', '--json', `${name}:/tmp/t`, 't'], { cwd });
    const skipped = (JSON.parse(made.stdout) as { skipped: { path: string }[] }).skipped;
    expect(skipped.map(({ path }) => path).sort()).toEqual(['fifo', 'socket']);
    expect(await readdir(join(cwd, 't'))).toEqual(['file']);
    const devices = await sally(['cp', `${name}:/dev`, 'dev'], { cwd });
    expect(devices.code).toBe(0);
    for (const device of ['null', 'zero', 'random'])
      expect(devices.stderr).toContain(`left out ${device}: it is neither`);
    const kinds = execFileSync('find', ['dev', '-printf', '%y\\n'], { cwd, encoding: 'utf8' });
    expect([...new Set(kinds.trim().split('\n'))].filter((kind) => !'dfl'.includes(kind))).toEqual([]);
    // One alone is refused, and neither blocks.
    for (const place of ['/tmp/t/fifo', '/tmp/t/socket', '/dev/zero']) {
      const single = await sally(['cp', `${name}:${place}`, 'single'], { cwd });
      expect(single.code, place).toBe(1);
    }
    expect((await readdir(cwd)).sort()).toEqual(['dev', 't']);
  });
});

/** A record as porter would send it, right or wrong. */
function record(
  kind: number,
  path: string,
  more: { readonly mode?: number; readonly content?: string; readonly target?: string } = {},
): Buffer {
  const content = Buffer.from(more.content ?? '');
  return Buffer.concat([
    new PayloadWriter()
      .u32(kind)
      .u32(more.mode ?? (kind === directory ? 0o755 : 0o644))
      .u64(0n)
      .u64(BigInt(content.length))
      .bytes(Buffer.from(path))
      .bytes(Buffer.from(more.target ?? ''))
      .end(),
    content,
  ]);
}

/** What the writer does with a tree that says this. */
async function written(root: string, records: readonly Buffer[]): ReturnType<typeof writeTree> {
  const { porter, say } = await lyingPorter();
  const writing = writeTree(root, porter.files.getTree('/x'));
  writing.catch(() => {});
  await new Promise((resolve) => setImmediate(resolve));
  for (const bytes of records) say(frame(frameType.data, bytes));
  say(frame(frameType.done, new PayloadWriter().u32(0).bytes(Buffer.alloc(16)).end()));
  return await writing;
}

const [file, directory, symbolic, other] = [1, 2, 3, 4];

describe('a tree that no honest sandbox sends', () => {
  it.each<readonly [string, string, readonly Buffer[]]>([
    ['an absolute name', 'porter_protocol', [record(file, '/etc/planted', { content: 'bad' })]],
    ['a name that goes up', 'porter_protocol', [record(file, '../planted', { content: 'bad' })]],
    ['one that goes up later', 'porter_protocol', [record(directory, 'a'), record(file, 'a/../../planted')]],
    ['a name with a NUL', 'porter_protocol', [record(file, 'a\0b')]],
    ['a set-user-id bit', 'porter_protocol', [record(file, 'a', { mode: 0o4755, content: 'bad' })]],
    ['a sticky folder', 'porter_protocol', [record(directory, 'a', { mode: 0o1777 })]],
    ['a kind that is none', 'porter_protocol', [record(6, 'device')]],
    ['a device with content', 'porter_protocol', [record(other, 'device', { content: 'bad' })]],
    ['a folder with content', 'porter_protocol', [record(directory, 'a', { content: 'bad' })]],
    [
      'a name twice',
      'tree_refused',
      [record(file, 'a', { content: '1' }), record(file, 'a', { content: '2' })],
    ],
    [
      'a folder, then a link of its name',
      'tree_refused',
      [record(directory, 'a'), record(symbolic, 'a', { target: 'b' })],
    ],
    [
      'a link, then something below it',
      'tree_refused',
      [
        record(directory, 'b'),
        record(symbolic, 'a', { target: 'b' }),
        record(file, 'a/planted', { content: 'bad' }),
      ],
    ],
    ['a file, then something below it', 'tree_refused', [record(file, 'a'), record(file, 'a/planted')]],
    ['something below nothing', 'tree_refused', [record(file, 'none/planted', { content: 'bad' })]],
    [
      'something below a link that is there',
      'tree_refused',
      [record(file, 'door/planted', { content: 'bad' })],
    ],
    ['a file where a folder is', 'tree_refused', [record(file, 'there', { content: 'bad' })]],
  ])('with %s is refused, and nothing is outside of the target', async (_name, code, records) => {
    const base = await newFolder('own');
    const root = join(base, 'root');
    for (const name of ['root', 'root/there', 'outside']) await mkdir(join(base, name));
    await symlink('../outside', join(root, 'door'));
    const control = await written(root, [
      record(directory, 'ok'),
      record(file, 'ok/file', { content: 'good' }),
    ]);
    expect(control).toEqual({ entries: 2, skipped: [] });
    await expect(written(root, records)).rejects.toMatchObject({ code });
    expect((await readdir(base)).sort()).toEqual(['outside', 'root']);
    expect(await readdir(join(base, 'outside'))).toEqual([]);
    expect(await readdir(join(root, 'there'))).toEqual([]);
    expect(everythingIn(base)).not.toContain('bad');
    expect(await lstat('/etc/planted').catch(() => 'absent')).toBe('absent');
  });
});

/** Swaps `place` between what it is and a link, as fast as it can, until its input ends; tells when it has begun. */
const swapper = `
import os, select, sys
place, target = sys.argv[1:3]
aside = place + '.aside'
print('begun', flush=True)
turns = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(50):
        try:
            os.rename(place, aside)
            os.symlink(target, place)
            os.unlink(place)
            os.rename(aside, place)
        except OSError:
            # The host may have put something there meanwhile.
            try:
                if os.path.islink(place) or os.path.isfile(place): os.unlink(place)
                if os.path.isdir(aside) and not os.path.exists(place): os.rename(aside, place)
                elif not os.path.exists(aside): os.makedirs(place, exist_ok=True)
                else: os.rename(place, place + '.' + str(turns)); turns += 1
            except OSError: pass
`;

async function whileSwapping(
  box: Sandbox,
  [place, target]: readonly [string, string],
  work: () => Promise<void>,
): Promise<void> {
  const swapping = await box.spawn(['python3', '-c', swapper, place, target], { stdin: true });
  for await (const chunk of swapping.stdout) if (chunk.toString().includes('begun')) break;
  try {
    await work();
  } finally {
    swapping.stdin.end();
    await swapping.wait();
  }
}

/** What it ended with, where it may fail: by a typed refusal, and nothing else. */
async function refusedOr<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isSallyportError(error)) return undefined;
    throw error;
  }
}

const mostRounds = 400;
/** Others beside what is swapped: they take time between when a folder is listed and when a name in it is opened. */
const crowd = (folder: string): string => `for i in $(seq 100); do echo crowd > ${folder}/a$i; done`;

describe('a path that is swapped while it is used', () => {
  it('never takes what is outside of the tree out of the sandbox (CVE-2018-15664)', async () => {
    const daemon = await testDaemon();
    const box = await daemon.make();
    const host = await newFolder('own');
    await box.sh(
      `mkdir -p /tmp/t/d /tmp/else && echo inside > /tmp/t/d/file && echo SECRET > /tmp/else/file; ${crowd('/tmp/t')}`,
      { check: true },
    );
    const seen = { folder: 0, link: 0, followed: 0 };
    await whileSwapping(box, ['/tmp/t/d', '/tmp/else'], async () => {
      for (let round = 0; round < mostRounds; round++) {
        const out = join(host, String(round));
        const result = await refusedOr(box.files.download('/tmp/t', out));
        if (result?.skipped.some(({ path }) => path === 'd')) seen.link++;
        if ((await readdir(join(out, 'd')).catch((): string[] => [])).includes('file')) seen.folder++;
        // The control: who follows links is led away by the same swap.
        if ((await box.files.readText('/tmp/t/d/file').catch(() => '')).includes('SECRET')) seen.followed++;
        if (round >= 40 && Math.min(seen.folder, seen.link, seen.followed) > 0) break;
      }
    });
    expect(seen).toEqual({
      folder: expect.any(Number),
      link: expect.any(Number),
      followed: expect.any(Number),
    });
    expect(Math.min(seen.folder, seen.link, seen.followed)).toBeGreaterThan(0);
    const all = everythingIn(host);
    expect(all).toContain('inside');
    expect(all).not.toContain('SECRET');
  }, 120_000);

  it('never leads what is written to a live workspace out of the target', async () => {
    const base = await newFolder();
    const [shared, outside] = [join(base, 'shared'), join(base, 'outside')];
    for (const folder of [shared, outside]) {
      await mkdir(folder);
      if (process.getuid?.() === 0) execFileSync('chown', ['1000:1000', folder]);
    }
    const daemon = await testDaemon();
    const box = await daemon.make({ workspace: { path: shared } });
    await box.sh('mkdir -p /tmp/t/d && for i in 1 2 3 4 5 6 7 8; do echo planted > /tmp/t/d/$i; done', {
      check: true,
    });
    await box.files.mkdir('/workspace/out/d', { parents: true });
    await writeFile(join(outside, '1'), 'kept');
    const seen = { written: 0, refused: 0 };
    await whileSwapping(box, ['/workspace/out/d', outside], async () => {
      for (let round = 0; round < mostRounds; round++) {
        const result = await refusedOr(box.files.download('/tmp/t', join(shared, 'out')));
        if (result === undefined) seen.refused++;
        else seen.written++;
        if (round >= 40 && Math.min(seen.written, seen.refused) > 0) break;
      }
    });
    expect(Math.min(seen.written, seen.refused)).toBeGreaterThan(0);
    expect(await readdir(outside)).toEqual(['1']);
    expect(await readFile(join(outside, '1'), 'utf8')).toBe('kept');
    expect(everythingIn(shared)).toContain('planted');
  }, 120_000);

  it('[A2] never takes what is outside of the named folder into a sandbox', async () => {
    const base = await newFolder();
    const [shared, outside] = [join(base, 'shared'), join(base, 'outside')];
    for (const folder of [shared, outside]) {
      await mkdir(folder);
      if (process.getuid?.() === 0) execFileSync('chown', ['1000:1000', folder]);
    }
    await writeFile(join(outside, 'file'), 'SECRET');
    const daemon = await testDaemon();
    const box = await daemon.make({ workspace: { path: shared } });
    const taker = await daemon.make();
    await box.sh(`mkdir -p /workspace/t/d && echo inside > /workspace/t/d/file; ${crowd('/workspace/t')}`, {
      check: true,
    });
    const seen = { copied: 0, link: 0, followed: 0 };
    await whileSwapping(box, ['/workspace/t/d', outside], async () => {
      for (let round = 0; round < mostRounds; round++) {
        await taker.files.mkdir(`/tmp/${round}`);
        const names = await refusedOr(
          taker.files
            .upload(join(shared, 't'), `/tmp/${round}`)
            .then(() => taker.files.list(`/tmp/${round}`)),
        );
        for (const { name, kind } of names ?? []) {
          if (name === 'd' && kind === 'symlink') seen.link++;
          if (name === 'd' && kind === 'directory') seen.copied++;
        }
        if ((await readFile(join(shared, 't/d/file'), 'utf8').catch(() => '')).includes('SECRET'))
          seen.followed++;
        if (round >= 40 && Math.min(seen.copied, seen.link, seen.followed) > 0) break;
      }
    });
    expect(Math.min(seen.copied, seen.link, seen.followed)).toBeGreaterThan(0);
    const found = await taker.exec(['grep', '-r', 'SECRET', '/tmp']);
    expect(found).toMatchObject({ exitCode: 1, stdout: '' });
    expect((await taker.exec(['grep', '-rl', 'inside', '/tmp'])).exitCode).toBe(0);
  }, 120_000);
});

describe('a copy', () => {
  it('runs and loads nothing that the sandbox brings (CVE-2019-14271)', async () => {
    const daemon = await testDaemon();
    const box = await daemon.make({
      envs: { PATH: '/home/sally/bin:/usr/bin:/bin', LD_PRELOAD: '/home/sally/evil.so' },
    });
    const host = await newFolder('own');
    await writeFile(join(host, 'in'), 'in');
    await box.sh(
      `mkdir -p ~/bin /tmp/t && echo out > /tmp/t/file
       for name in tar cp cat sh ls porter; do printf '#!/bin/bash\\necho ran >> /tmp/ran\\n' > ~/bin/$name; chmod 755 ~/bin/$name; done`,
      { check: true },
    );
    await box.files.upload(join(host, 'in'), '/tmp/t/in');
    await box.files.upload(host, '/tmp/folder');
    await box.files.download('/tmp/t', join(host, 'out'));
    expect((await readdir(join(host, 'out'))).sort()).toEqual(['file', 'in']);
    await expect(box.files.stat('/tmp/ran')).rejects.toMatchObject({ code: 'file_not_found' });
    // The control: the trap works for whoever asks for a program by its name.
    await box.exec(['tar', '--version']);
    expect(await box.files.readText('/tmp/ran')).toBe('ran\n');
  });
});
