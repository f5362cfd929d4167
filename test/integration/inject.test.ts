import { chown, mkdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CreateOptions } from '../../src/sdk/sandbox.ts';
import { makeBox, newFolder, sally } from '../support/cli.ts';
import { testDaemon } from '../support/daemon.ts';

/** A folder with two files, and one beside it. */
async function folders(): Promise<{ readonly cwd: string; readonly beside: string }> {
  const [cwd, beside] = [await newFolder(), await newFolder()];
  await mkdir(join(cwd, 'conf/deep'), { recursive: true });
  await writeFile(join(cwd, 'top.txt'), 'top');
  await writeFile(join(cwd, 'conf/deep/run.sh'), 'deep', { mode: 0o750 });
  await writeFile(join(beside, 'other.txt'), 'other');
  return { cwd, beside };
}

async function copiedWorkspace(): Promise<CreateOptions> {
  return { workspace: { path: await newFolder(), mode: 'copy' } };
}

describe('[O6] sally inject', () => {
  it('puts what is below this folder by its relative path, the rest by name, and prints how many', async () => {
    const { cwd, beside } = await folders();
    const name = await makeBox(['--workspace', await newFolder(), '--workspace-mode', 'copy']);
    const given = [
      'top.txt',
      join(cwd, 'conf/deep/run.sh'),
      join(beside, 'other.txt'),
      'no-such',
      '/no/such',
    ];
    const result = await sally(['inject', name, ...given], { cwd });
    expect(result).toMatchObject({ code: 0, stdout: '3\n' });
    expect(result.stderr.trim().split('\n')).toEqual([
      'sally: warning: no-such is not there and was left out',
      'sally: warning: /no/such is not there and was left out',
    ]);
    const look =
      'cd /workspace && cat top.txt conf/deep/run.sh other.txt && stat -c %a-%U conf/deep/run.sh && id -un';
    const seen = await sally(['exec', name, 'sh', '-c', look]);
    expect(seen.stdout).toBe('topdeepother750-sally\nsally\n');
  });

  it('tells scripts what went where, replaces what is there, and takes names that look like options', async () => {
    const { cwd } = await folders();
    const name = await makeBox(['-w', '/srv/here']);
    await writeFile(join(cwd, '-odd'), 'odd');
    const first = await sally(['inject', '--json', name, '--', '-odd', 'top.txt', 'gone'], { cwd });
    expect(JSON.parse(first.stdout)).toEqual({
      injected: 2,
      files: [
        { from: join(cwd, '-odd'), to: '/srv/here/-odd' },
        { from: join(cwd, 'top.txt'), to: '/srv/here/top.txt' },
      ],
      missing: ['gone'],
      too_large: [],
    });
    await writeFile(join(cwd, 'top.txt'), 'new');
    expect((await sally(['inject', name, 'top.txt'], { cwd })).stdout).toBe('1\n');
    expect((await sally(['exec', name, 'cat', './-odd', 'top.txt'])).stdout).toBe('oddnew');
  });

  it('leaves out a file whose holes nobody would wait for, and takes the others', async () => {
    const { cwd } = await folders();
    const name = await makeBox(['-w', '/srv/here']);
    for (const [file, sizeBytes] of Object.entries({ huge: 2 ** 40, small: 2 ** 20 })) {
      await writeFile(join(cwd, file), '');
      await truncate(join(cwd, file), sizeBytes);
    }
    const given = ['top.txt', 'huge', 'small', 'conf/deep/run.sh'];
    const result = await sally(['inject', name, ...given], { cwd });
    expect(result).toMatchObject({ code: 0, stdout: '3\n' });
    const warning = `sally: warning: ${join(cwd, 'huge')} was left out: more than 16 GiB of holes are not read`;
    expect(result.stderr.trim()).toBe(warning);
    const json = JSON.parse((await sally(['inject', '--json', name, ...given], { cwd })).stdout);
    expect(json).toMatchObject({ injected: 3, missing: [], too_large: [join(cwd, 'huge')] });
    expect(json.files.map(({ to }: { to: string }) => to)).not.toContain('/srv/here/huge');
    const seen = await sally(['exec', name, 'sh', '-c', 'cat top.txt; stat -c %s small; ls -R']);
    expect(seen.stdout).toContain(`top${2 ** 20}\n`);
    expect(seen.stdout).toContain('run.sh');
    expect(seen.stdout).not.toContain('huge');
  });

  it.each([
    [['folder'], 'folder is a folder'],
    [['same', '../same'], 'would both be same inside'],
    [['folder/x', '../folder'], 'would both be folder inside'],
    [['/dev/null'], 'neither a file nor a folder'],
    [[''], 'is no name'],
  ])('refuses %j before anything is written', async (given, message) => {
    const above = await newFolder();
    const cwd = join(above, 'here');
    await mkdir(join(cwd, 'folder'), { recursive: true });
    for (const file of ['here/first', 'here/same', 'same', 'here/folder/x', 'folder']) {
      await writeFile(join(above, file), 'x');
    }
    const name = await makeBox(['-w', '/tmp']);
    const result = await sally(['inject', name, 'first', ...given], { cwd });
    expect(result).toMatchObject({ code: 2, stdout: '' });
    expect(result.stderr).toContain(message);
    expect((await sally(['exec', name, 'ls', '-A', '/tmp'])).stdout).toBe('');
    expect((await sally(['inject', name, 'first', 'first', './first'], { cwd })).stdout).toBe('1\n');
  });

  it('fails where the sandbox does not take it', async () => {
    const { cwd } = await folders();
    const name = await makeBox(['-w', '/tmp']);
    expect((await sally(['inject', 'no-such-box', 'top.txt'], { cwd })).code).toBe(1);
    await sally(['stop', name]);
    const stopped = await sally(['inject', name, 'top.txt'], { cwd });
    expect(stopped.code).toBe(1);
    expect(stopped.stderr).toContain(name);
    await sally(['start', name]);
    expect((await sally(['inject', name, 'top.txt'], { cwd })).code).toBe(0);
  });
});

describe('[O6] box.inject', () => {
  it('follows no link inside, neither at the name nor on the way', async () => {
    const { cwd } = await folders();
    const daemon = await testDaemon();
    const box = await daemon.make(await copiedWorkspace());
    await box.sh(
      'mkdir /tmp/else && echo kept > /tmp/kept && ln -s /tmp/kept top.txt && ln -s /tmp/else conf',
      {
        check: true,
      },
    );
    expect(await box.inject(['top.txt'], { cwd })).toMatchObject({ count: 1, missing: [] });
    const { stdout } = await box.sh('cat /tmp/kept top.txt && test ! -L top.txt && echo own');
    expect(stdout).toBe('kept\ntopown\n');
    const through = box.inject(['conf/deep/run.sh'], { cwd });
    await expect(through).rejects.toMatchObject({ code: 'file_invalid' });
    expect((await box.sh('ls -A /tmp/else')).stdout).toBe('');
    await box.sh('rm conf', { check: true });
    expect((await box.inject(['conf/deep/run.sh'], { cwd })).count).toBe(1);
  });

  it('leaves a file of a live workspace alone that is its own target', async () => {
    const { cwd, beside } = await folders();
    if (process.getuid?.() === 0) await chown(join(cwd, 'top.txt'), 1000, 1000);
    const daemon = await testDaemon();
    const box = await daemon.make({ workspace: { path: cwd } });
    const before = (await box.files.stat('/workspace/top.txt')).modifiedAt;
    const given = ['top.txt', join(beside, 'other.txt')];
    expect((await box.inject(given, { cwd })).files.map(({ to }) => to)).toEqual([
      '/workspace/top.txt',
      '/workspace/other.txt',
    ]);
    expect((await box.files.stat('/workspace/top.txt')).modifiedAt).toBe(before);
    expect(await readFile(join(cwd, 'top.txt'), 'utf8')).toBe('top');
    expect(await readFile(join(cwd, 'other.txt'), 'utf8')).toBe('other');
  });

  it('fails with a code where the sandbox does not take it', async () => {
    const { cwd } = await folders();
    const daemon = await testDaemon();
    const box = await daemon.make({ workdir: '/tmp' });
    expect((await box.inject(['top.txt', 'none'], { cwd })).missing).toEqual(['none']);
    await box.stop();
    await expect(box.inject(['top.txt'], { cwd })).rejects.toMatchObject({ code: 'sandbox_state' });
  });
});
