import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { CappedOutput } from './capped-output.ts';
import { hostEnvironment } from './host-environment.ts';
import { runOnHost } from './host-run.ts';

const limits = { timeoutMs: 60_000, graceMs: 0, outputBytes: 50 * 1024 };
const here = () => ({ cwd: temporaryFolder(), environment: process.env, ...limits });

describe('[C4][C5] a guarded command on the host', () => {
  test('gives its output and its exit code, and reads nothing', async () => {
    const run = await runOnHost({ text: 'cat; echo out; echo err >&2; exit 7' }, here());
    expect(run).toMatchObject({ stdout: 'out\n', stderr: 'err\n', exitCode: 7, timedOut: false });
  });

  test('runs words without a shell', async () => {
    const run = await runOnHost({ text: '', argv: ['echo', '$(id)', ';'] }, here());
    expect(run).toMatchObject({ stdout: '$(id) ;\n', exitCode: 0 });
    expect(await runOnHost({ text: '', argv: ['no-such-program'] }, here())).toMatchObject({ exitCode: 127 });
  });

  test('has nothing of the environment but a few plain variables', async () => {
    const environment = {
      PATH: process.env['PATH'],
      HOME: '/home/x',
      LC_ALL: 'C',
      API_TOKEN: 'secret',
      LD_PRELOAD: '/tmp/x.so',
      BASH_ENV: '/tmp/rc',
      NODE_OPTIONS: '--require=/tmp/x.js',
      GIT_SSH_COMMAND: 'x',
    };
    const { stdout } = await runOnHost({ text: '', argv: ['env'] }, { ...here(), environment });
    const names = stdout
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0] ?? '');
    expect(names.filter((name) => !name.startsWith('GIT_CONFIG_')).sort()).toEqual(
      ['GIT_PAGER', 'GIT_TERMINAL_PROMPT', 'HOME', 'LC_ALL', 'PAGER', 'PATH'].sort(),
    );
  });

  test('takes no program from the folder that it works in', async () => {
    const cwd = temporaryFolder();
    mkdirSync(join(cwd, 'bin'));
    writeFileSync(join(cwd, 'bin', 'ls'), '#!/bin/sh\necho planted\n', { mode: 0o755 });
    const environment = { PATH: `${join(cwd, 'bin')}:.:bin:${process.env['PATH']}` };
    const run = await runOnHost({ text: 'ls' }, { ...here(), cwd, environment });
    expect(run.stdout).toBe('bin\n');
    expect(hostEnvironment({ PATH: '.' }, cwd)['PATH']).toContain('/usr/bin');
  });

  test('starts nothing that a repository names in its configuration', async () => {
    const cwd = temporaryFolder();
    const git = async (...argv: string[]) =>
      await runOnHost(
        { text: '', argv: ['git', ...argv] },
        { ...here(), cwd, environment: { ...process.env, HOME: cwd } },
      );
    expect((await git('init', '-q')).exitCode).toBe(0);
    writeFileSync(join(cwd, 'planted'), '#!/bin/sh\ntouch was-here\n', { mode: 0o755 });
    await git('config', 'core.fsmonitor', './planted');
    const run = await git('status', '--porcelain');
    expect(run).toMatchObject({ exitCode: 0, stdout: '?? planted\n' });
  });

  test('[C1] obeys no repository that lies among ordinary files; git by itself does', async () => {
    const cwd = temporaryFolder();
    for (const name of ['objects', 'refs']) mkdirSync(join(cwd, name));
    writeFileSync(join(cwd, 'HEAD'), 'ref: refs/heads/main\n');
    writeFileSync(
      join(cwd, 'config'),
      '[core]\n repositoryformatversion = 0\n bare = false\n worktree = .\n[alias]\n planted = "!touch was-here"\n',
    );
    const argv = ['git', 'planted'];
    const { stderr } = await runOnHost(
      { text: '', argv },
      { ...here(), cwd, environment: { ...process.env, HOME: cwd } },
    );
    expect(stderr).toContain("'planted' is not a git command");
    expect(existsSync(join(cwd, 'was-here'))).toBe(false);
    execFileSync('git', ['planted'], { cwd, env: { PATH: process.env['PATH'] ?? '', HOME: cwd } });
    expect(existsSync(join(cwd, 'was-here'))).toBe(true);
  });

  test('keeps at most so many bytes of each stream, head and tail', async () => {
    const text = 'head -c 300000 /dev/zero | tr "\\0" a; echo end; head -c 70000 /dev/zero | tr "\\0" b >&2';
    const { stdout, stderr } = await runOnHost({ text }, here());
    expect(stdout).toMatch(/^a{25600}\n\[… 248804 bytes left out …\]\na+end\n$/);
    expect(stderr).toContain('[… 18800 bytes left out …]');
  });

  test('is killed at its deadline with all of its group, also what ignores TERM', async () => {
    const fifo = join(temporaryFolder(), 'fifo');
    await runOnHost({ text: '', argv: ['mkfifo', fifo] }, here());
    const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
    onTestFinished(() => closeSync(reader));
    // Whoever still lives has it open for writing.
    const text = `trap '' TERM; exec 3> '${fifo}'; (trap '' TERM; echo ab >&3; sleep 1000) & sleep 1000`;
    const run = await runOnHost({ text }, { ...here(), timeoutMs: 4000 });
    expect(run).toMatchObject({ timedOut: true, exitCode: 137 });
    expect(run.durationMs).toBeLessThan(30_000);
    const block = Buffer.alloc(10);
    expect(readSync(reader, block)).toBe(3);
    await end(reader);
  });

  test('ends when its main process ends, whoever holds its output', async () => {
    const run = await runOnHost({ text: 'sleep 1000 & echo done' }, here());
    expect(run).toMatchObject({ stdout: 'done\n', exitCode: 0 });
    expect(run.durationMs).toBeLessThan(30_000);
  });

  test('is cancelled with everything that it started', async () => {
    const cancel = new AbortController();
    const cwd = temporaryFolder();
    const fifo = join(cwd, 'fifo');
    expect((await runOnHost({ text: '', argv: ['mkfifo', fifo] }, here())).exitCode).toBe(0);
    const running = runOnHost(
      { text: `echo x > '${fifo}'; sleep 1000` },
      { ...here(), signal: cancel.signal },
    );
    // It runs as soon as this has something to read.
    readFileSync(fifo);
    cancel.abort();
    await expect(running).rejects.toMatchObject({ code: 'cancelled' });
  });
});

/** A killed process takes a moment to be gone. */
async function end(reader: number): Promise<void> {
  for (;;) {
    try {
      expect(readSync(reader, Buffer.alloc(10))).toBe(0);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('output with a limit', () => {
  test('is whole below it, and loses only the middle above', () => {
    const output = new CappedOutput(10);
    for (const chunk of ['abc', 'defgh', 'ij']) output.add(Buffer.from(chunk));
    expect(output.text()).toBe('abcdefghij');
    for (const chunk of ['k', 'lmnopqrstuvw', 'xyz']) output.add(Buffer.from(chunk));
    expect(output.text()).toBe('abcde\n[… 16 bytes left out …]\nvwxyz');
  });
});
