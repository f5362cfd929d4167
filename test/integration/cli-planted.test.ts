import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chown, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeBox, newFolder, sally } from '../support/cli.ts';
import { daemonBetween } from '../support/daemon-between.ts';
import { imageFlags } from '../support/engine-under-test.ts';
import { until } from '../support/until.ts';

const nested = 'mkdir -p sub/objects sub/refs; echo x > sub/HEAD';
const warning = /WARNING: 1 thing appeared in the workspace that programs of this machine may execute/;

/** A user with the folder of a tool, and a daemon of that user's own. */
async function userWithTool(): Promise<Record<string, string>> {
  const home = await newFolder();
  await mkdir(join(home, '.claude'));
  if (process.getuid?.() === 0) await chown(join(home, '.claude'), 1000, 1000);
  const env = { HOME: home, SALLYPORT_STATE_DIR: await newFolder('own') };
  onTestFinished(async () => void (await sally(['daemon', 'stop'], { env })));
  return env;
}

describe('[N5] what a sandbox plants in a live workspace', () => {
  it('is preceded, once, by the setting of git that ignores bare repositories', async () => {
    // A user who has no setting of git and was told nothing yet.
    const env = { HOME: await newFolder(), SALLYPORT_STATE_DIR: await newFolder('own') };
    onTestFinished(async () => void (await sally(['daemon', 'stop'], { env })));
    const run = async (): Promise<string> => {
      const args = ['run', ...imageFlags(), '--workspace', await newFolder(), '--', 'true'];
      const { code, stderr } = await sally(args, { env });
      expect(code, stderr).toBe(0);
      return stderr;
    };
    const command = 'git config --global safe.bareRepository explicit';
    expect(await run()).toContain(command);
    expect(await run()).not.toContain(command);
  });

  it('is told at the end of sally exec and of sally stop, and by sally verify', async () => {
    const name = await makeBox(['--workspace', await newFolder()]);
    expect((await sally(['exec', name, 'true'])).stderr).toBe('');
    const planting = await sally(['exec', name, 'sh', '-c', `${nested}; exit 3`]);
    expect(planting.code).toBe(3);
    expect(planting.stderr).toMatch(warning);
    expect(planting.stderr).toContain('sub (git directory, new): do not run git there');
    // What an earlier command planted is not this one's.
    expect((await sally(['exec', name, 'true'])).stderr).toBe('');
    const verified = await sally(['verify', name]);
    expect(verified.code).toBe(1);
    expect(verified.stdout).toMatch(/failed +workspace sub +git directory, new/);
    expect((await sally(['stop', name])).stderr).toMatch(warning);
  });

  it('is told by sally rm, also what a process in the background planted', async () => {
    const folder = await newFolder();
    const name = await makeBox(['--workspace', folder]);
    const script = `while ! [ -e go ]; do sleep 0.1; done; ${nested}; touch done; while :; do sleep 1; done`;
    expect((await sally(['exec', '--detach', name, 'sh', '-c', script])).code).toBe(0);
    await writeFile(join(folder, 'go'), '');
    await until(() => existsSync(join(folder, 'done')));
    const removed = await sally(['rm', name]);
    expect(removed).toMatchObject({ code: 0, stdout: `${name}\n` });
    expect(removed.stderr).toMatch(warning);
    expect(removed.stderr).toContain('sub (git directory, new)');
  });

  it('is told by sally rm of a sandbox that is paused or stopped', async () => {
    for (const verb of ['pause', 'stop'] as const) {
      const name = await makeBox(['--workspace', await newFolder()]);
      await sally(['exec', name, 'sh', '-c', nested]);
      expect((await sally([verb, name])).code).toBe(0);
      const removed = await sally(['rm', name]);
      expect(removed, verb).toMatchObject({ code: 0, stdout: `${name}\n` });
      expect(removed.stderr, verb).toMatch(warning);
    }
  });

  it('is told by sally stop and sally rm without a second scan; sally exec asks for one', async () => {
    let scans = 0;
    const env = async () => ({
      SALLYPORT_STATE_DIR: await daemonBetween(/GET \S+\/workspace-scan/, () => void scans++),
    });
    const name = await makeBox(['--workspace', await newFolder()]);
    const script = ['exec', name, 'sh', '-c', nested];
    expect((await sally(script, { env: await env() })).stderr).toMatch(warning);
    expect(scans).toBe(1);
    for (const verb of ['stop', 'rm']) {
      const { code, stderr } = await sally([verb, name], { env: await env() });
      expect(code, verb).toBe(0);
      expect(stderr, verb).toMatch(warning);
    }
    expect(scans).toBe(1);
  });

  it('is told, of a HEAD that git does not accept, with how to restore it', async () => {
    const folder = await newFolder();
    const git = (...args: string[]) =>
      execFileSync('git', args, { cwd: folder, stdio: 'ignore', env: { ...process.env, HOME: folder } });
    git('init', '--quiet', '--initial-branch=main');
    if (process.getuid?.() === 0) execFileSync('chown', ['-R', '1000:1000', folder]);
    const name = await makeBox(['--workspace', folder]);
    const write = async (head: string) =>
      await sally(['exec', name, 'sh', '-c', `echo '${head}' > .git/HEAD`]);
    expect((await write('ref: refs/heads/other')).stderr).toBe('');
    const { stderr } = await write('nothing');
    expect(stderr).toMatch(warning);
    expect(stderr).toContain(
      `.git/HEAD (invalid HEAD, new): git no longer takes .git for a repository and looks elsewhere: stop the sandbox (sally stop ${name}) and restore .git/HEAD before you run git`,
    );
  });

  it('does not end what runs where sally rm is refused; with --force it is removed', async () => {
    const env = await userWithTool();
    const box = await makeBox(
      ['--workspace', await newFolder(), '--workspace-mode', 'copy', '--tool', 'claude'],
      { env },
    );
    expect((await sally(['exec', box, 'touch', 'changed'], { env })).code).toBe(0);
    expect((await sally(['exec', '--detach', box, 'sleep', 'infinity'], { env })).code).toBe(0);
    const running = async (): Promise<number> => {
      const { stdout } = await sally(['inspect', box], { env });
      return (JSON.parse(stdout) as readonly { running_execs: number }[])[0]?.running_execs ?? 0;
    };
    expect(await running()).toBe(1);
    const refused = await sally(['rm', box], { env });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('changes that exist nowhere else');
    expect(await running()).toBe(1);
    expect(await sally(['rm', '--force', box], { env })).toMatchObject({ code: 0, stdout: `${box}\n` });
    expect((await sally(['inspect', box], { env })).code).not.toBe(0);
  });

  it('is told at the end of sally run', async () => {
    const folder = await newFolder();
    await mkdir(join(folder, 'old/objects'), { recursive: true });
    await mkdir(join(folder, 'old/refs'));
    await writeFile(join(folder, 'old/HEAD'), 'x');
    const run = async (script: string) =>
      await sally(['run', ...imageFlags(), '--workspace', folder, '--', 'sh', '-c', script]);
    expect((await run('true')).stderr).not.toContain('WARNING');
    expect((await run(nested)).stderr).toMatch(warning);
  });
});
