/** `copies` on the real engine: what comes in, what is left out, and what is refused before anything is made. */

import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { link, mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createBody, type ExecInput } from '../../src/protocol/requests.ts';
import type { SpecInput } from '../../src/protocol/spec.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { holdsLimits, onDocker, testImage } from '../support/engine-under-test.ts';
import { tellFigures } from '../support/figures.ts';
import { full } from '../support/requires.ts';
import { openSandboxes, runInSandbox } from '../support/sandboxes.ts';

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'sallyport-copies-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

async function say(box: Sandbox, script: string, more: Partial<ExecInput> = {}): Promise<string> {
  const { stdout, stderr, exec } = await runInSandbox(box, ['sh', '-c', script], more);
  expect({ stderr: stderr.data, code: exec.exit_code }).toEqual({ stderr: '', code: 0 });
  return stdout.data;
}

describe('copies', () => {
  test('[A2][A5] bring folders and single files that belong to the user, and leave the host as it is', async () => {
    const { make, reports } = await openSandboxes();
    // On bubblewrap the system is this machine's own, and nothing is put into it.
    const bin = onDocker ? '/usr/local/bin' : '/opt/bin';
    const source = await folder();
    await mkdir(join(source, 'sub/empty'), { recursive: true });
    await writeFile(join(source, 'run.sh'), '#!/bin/sh\necho ran\n', { mode: 0o755 });
    await writeFile(join(source, 'sub/data'), 'one');
    await link(join(source, 'sub/data'), join(source, 'sub/same'));
    await symlink('sub/data', join(source, 'relative'));
    await symlink(join(source, 'sub/data'), join(source, 'sub/absolute'));
    await symlink('loop', join(source, 'loop'));
    await symlink('nowhere', join(source, 'dangling'));
    await symlink(join(source, 'none/here'), join(source, 'sub/dangling'));
    await writeFile(Buffer.concat([Buffer.from(`${source}/`), Buffer.from([0xff, 0x2e, 0xfe])]), 'bytes');
    const box = await make({
      spec: {
        copies: [
          { source, target: '/data/in' },
          { source, target: '/home/sally/.config/deep/tree' },
          { source: join(source, 'run.sh'), target: `${bin}/run` },
        ],
      },
    });
    const inside = await say(
      box,
      `cd /data/in && ./run.sh && readlink relative sub/absolute loop dangling sub/dangling && cat sub/absolute &&
       echo changed >> sub/same && cat sub/data && stat -c '%U %a' . run.sh sub/data && ls | od -An -c | tr -d ' \\n'`,
    );
    expect(inside).toBe(
      'ran\nsub/data\ndata\nloop\nnowhere\n../none/here\noneonechanged\nsally 755\nsally 755\nsally 644\n' +
        'dangling\\nloop\\nrelative\\nrun.sh\\nsub\\n377.376\\n',
    );
    expect(await say(box, `${bin}/run; stat -c %U ${bin}/run`)).toBe('ran\nsally\n');
    if (onDocker) expect(await say(box, `run; stat -c %U ${bin}`)).toBe('ran\nroot\n');
    expect(await say(box, 'touch ~/.config/mine ~/.config/deep/tree/mine && stat -c %U ~/.config')).toBe(
      'sally\n',
    );
    expect(execFileSync('cat', [join(source, 'sub/data')], { encoding: 'utf8' })).toBe('one');
    // It stays over a stop, and is put in once.
    await box.stop(1000);
    await box.start();
    expect(await say(box, 'cat /data/in/sub/data')).toBe('onechanged\n');
    expect(reports).toEqual([]);
  });

  test('[A5] leave out what patterns and files of patterns say, and do not even read it', async () => {
    const { make } = await openSandboxes();
    const source = await folder();
    await mkdir(join(source, 'node_modules/x'), { recursive: true });
    await mkdir(join(source, 'docs/deep'), { recursive: true });
    await mkdir(join(source, 'closed'), { mode: 0o000 });
    await symlink('/etc/passwd', join(source, 'node_modules/out'));
    for (const name of [
      'a.log',
      'keep.log',
      'a.txt',
      'docs/one.md',
      'docs/deep/two.md',
      'docs/deep/three.txt',
    ]) {
      await writeFile(join(source, name), name);
    }
    await writeFile(join(source, '.gitignore'), '*.log\nnode_modules/\n');
    await writeFile(join(source, 'docs/deep/.gitignore'), '*.txt\n');
    await writeFile(join(source, '.dockerignore'), 'docs\n!docs/deep/two.md\n');
    const excludes = {
      exclude_patterns: ['closed/', '!keep.log'],
      exclude_from: ['.gitignore', '.dockerignore'],
    };
    const box = await make({
      spec: {
        workspace: { path: source, mode: 'copy', ...excludes },
        copies: [{ source, target: '/in', ...excludes }],
      },
    });
    const expected =
      './.dockerignore\n./.gitignore\n./a.txt\n./docs\n./docs/deep\n./docs/deep/two.md\n./keep.log\n';
    expect(await say(box, 'cd /in && find . -mindepth 1 | sort')).toBe(expected);
    expect(await say(box, 'cd /workspace && find . -mindepth 1 | sort')).toBe(expected);
    expect((await box.changes()).changes).toEqual([]);
    // What would not have been copied is no change either, by the patterns as they were then.
    const changed = async (): Promise<readonly string[]> =>
      (await box.changes()).changes.map(({ path }) => path.toString());
    await say(
      box,
      `cd /workspace && mkdir -p node_modules/y docs/other && echo x | tee node_modules/y/f b.log docs/new.md docs/other/x > /dev/null &&
       mkdir -p closed/in`,
    );
    expect(await changed()).toEqual([]);
    await say(
      box,
      "cd /workspace && echo '!*.log' >> .gitignore && echo more >> docs/deep/two.md && echo > new.txt",
    );
    expect(await changed()).toEqual(['.gitignore', 'docs/deep/two.md', 'new.txt']);
    await say(box, 'cd /workspace && rm -r docs a.txt && echo no folder > docs');
    expect(await changed()).toEqual([
      '.gitignore',
      'a.txt',
      'docs',
      'docs/deep',
      'docs/deep/two.md',
      'new.txt',
    ]);
  });

  test('[A5] hold a file with holes without filling the disk, and a large one whole', async () => {
    const { make } = await openSandboxes();
    const source = await folder();
    await writeFile(join(source, 'holes'), 'begin');
    await truncate(join(source, 'holes'), (full ? 2048 : 64) * 2 ** 20);
    const large = Buffer.alloc(8 * 2 ** 20, 'x');
    await writeFile(join(source, 'large'), large);
    const box = await make({ spec: { copies: [{ source, target: '/in' }] } });
    const [bytes, blocks, sum] = (
      await say(box, "cd /in && stat -c '%s' holes && stat -c '%b' holes && sha256sum < large | cut -c1-8")
    ).split('\n');
    expect(Number(bytes)).toBe((full ? 2048 : 64) * 2 ** 20);
    expect(Number(blocks) * 512).toBeLessThan(2 ** 20);
    expect(sum).toBe(createHash('sha256').update(large).digest('hex').slice(0, 8));
  });

  test('[A5] bring many small files, and say how far they are', async () => {
    const { make, sandboxes } = await openSandboxes();
    const source = await folder();
    const count = full ? 200_000 : 5000;
    execFileSync('sh', ['-c', 'cd "$1" && seq 1 "$2" | split -l 1 -a 4 - f', 'sh', source, String(count)]);
    const from = performance.now();
    const box = await make({ spec: { copies: [{ source, target: '/in' }] } });
    tellFigures(`copies of ${count} small files`, { seconds: (performance.now() - from) / 1000 });
    const counted = 'find /in -type f -exec cat {} + | sort -nu | wc -l';
    expect(await say(box, counted, { timeout_ms: 900_000 })).toBe(`${count}\n`);
    const steps: string[] = [];
    for await (const event of sandboxes.events.follow(0, AbortSignal.timeout(60_000))) {
      if (event.type === 'sandbox.progress' && event.step === 'copy') steps.push(event.message);
      if (event.sequence === sandboxes.events.sequence) break;
    }
    expect(steps).toHaveLength(Math.floor(count / 1000));
    expect(steps[0]).toBe(`copying ${source}: 1000 entries`);
  }, 1_800_000);
});

describe('what copies refuse', () => {
  async function refusal(spec: SpecInput) {
    const { sandboxes } = await openSandboxes();
    const before = sandboxes.events.sequence;
    const body = createBody.parse({ spec: { ...testImage(), ...spec } });
    const error = await sandboxes.create(body).then(
      () => undefined,
      (failure: unknown) => failure,
    );
    // Nothing was begun.
    expect(sandboxes.list()).toEqual([]);
    expect(sandboxes.events.sequence).toBe(before);
    return error;
  }

  test('[A3][A5] links that lead out, devices, sockets and pipes: by name, and before anything is made', async () => {
    const source = await folder();
    await mkdir(join(source, 'deep'));
    const copies = [{ source, target: '/in' }];
    await symlink('../../outside', join(source, 'deep/link'));
    expect(await refusal({ copies })).toMatchObject({
      code: 'refused_by_policy',
      message: expect.stringContaining('deep/link'),
      details: { path: 'deep/link', target: '../../outside', rule: 'external-link' },
      advice: expect.stringContaining('exclude_patterns'),
    });
    await rm(join(source, 'deep/link'));
    // Also one that names nothing today.
    await symlink('/nowhere/at/all', join(source, 'deep/dangling'));
    expect(await refusal({ copies })).toMatchObject({
      details: { path: 'deep/dangling', target: '/nowhere/at/all', rule: 'external-link' },
    });
    await rm(join(source, 'deep/dangling'));
    execFileSync('mkfifo', [join(source, 'deep/pipe')]);
    expect(await refusal({ copies })).toMatchObject({ details: { path: 'deep/pipe', rule: 'special-file' } });
    await rm(join(source, 'deep/pipe'));
    const server = createServer().listen(join(source, 'socket'));
    onTestFinished(() => void server.close());
    await new Promise((done) => server.once('listening', done));
    expect(await refusal({ copies })).toMatchObject({ details: { path: 'socket', rule: 'special-file' } });
    expect(await refusal({ copies: [{ source: join(source, 'socket'), target: '/in' }] })).toMatchObject({
      details: { field: 'copies.0.source' },
    });
    const { make } = await openSandboxes();
    const box = await make({ spec: { copies: [{ source, target: '/in', exclude_patterns: ['socket'] }] } });
    expect(await say(box, 'ls /in')).toBe('deep\n');
  });

  test('[A3][O4] forbidden, missing, linked and doubled sources and targets', async () => {
    const source = await folder();
    await symlink(source, `${source}.link`);
    onTestFinished(() => rm(`${source}.link`));
    await writeFile(join(source, 'file'), '');
    const to = (target: string, from = source) => ({ source: from, target });
    const strict: [SpecInput, string, RegExp] = [
      { copies: [to('/in')], profile: 'strict' },
      'copies',
      /read-only/,
    ];
    const refusals: [SpecInput, string, RegExp][] = [
      [{ copies: [to('/in', '/etc')] }, 'copies.0.source', /belongs to the system/],
      [{ copies: [to('/in', '/')] }, 'copies.0.source', /whole machine/],
      [{ copies: [to('/in', `${source}/none`)] }, 'copies.0.source', /there is no/],
      [{ copies: [to('/in', `${source}.link`)] }, 'copies.0.source', /symbolic link/],
      [{ copies: [to('/in', 'relative')] }, 'copies.0.source', /not absolute/],
      [{ copies: [to('/')] }, 'copies.0.target', /nothing may be put/],
      [{ copies: [to('/proc/x')] }, 'copies.0.target', /kernel/],
      [{ copies: [to('/.sallyport/x')] }, 'copies.0.target', /first process/],
      [{ copies: [to('/tmp/x')] }, 'copies.0.target', /memory/],
      [{ copies: [to('/in'), to('/in/')] }, 'copies.1.target', /also the target/],
      [{ copies: [to('/in'), to('/in/sub')] }, 'copies.1.target', /nested/],
      [{ copies: [to('/in')], mounts: [to('/in/sub')] }, 'copies.0.target', /nested/],
      [{ copies: [to('/workspace')], workspace: { path: source, mode: 'copy' } }, 'copies.0.target', /also/],
      ...(holdsLimits ? [strict] : []),
      [{ copies: [{ ...to('/in'), exclude_from: ['.none'] }] }, 'exclude_from', /not there/],
      [
        { copies: [{ ...to('/in', join(source, 'file')), exclude_patterns: ['x'] }] },
        'copies.0.exclude_patterns',
        /single file/,
      ],
      [
        { workspace: { path: source, mode: 'readonly', exclude_patterns: ['x'] } },
        'workspace.exclude_patterns',
        /only of a copy/,
      ],
    ];
    for (const [spec, field, message] of refusals) {
      expect(await refusal(spec)).toMatchObject({
        code: 'refused_by_policy',
        message: expect.stringMatching(message),
        details: { field },
      });
    }
  });

  test('[A5] a file that changes while it is copied is named, and the sandbox is not made', async () => {
    const { sandboxes, make } = await openSandboxes();
    const source = await folder();
    await writeFile(join(source, 'large'), '');
    await truncate(join(source, 'large'), 8 * 2 ** 20);
    const writer = spawn('sh', [
      '-c',
      'echo begun; while echo more >> "$1"; do :; done',
      'sh',
      join(source, 'large'),
    ]);
    onTestFinished(() => void writer.kill('SIGKILL'));
    await once(writer.stdout, 'data');
    const making = make({ spec: { name: 'torn', copies: [{ source, target: '/in' }] } });
    await expect(making).rejects.toMatchObject({ code: 'copy_changed', details: { path: 'large' } });
    expect(sandboxes.get('torn').state).toBe('FAILED');
  });
});
