import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeBox, newFolder, sally } from '../support/cli.ts';
import { imageFlags } from '../support/engine-under-test.ts';
import { until } from '../support/until.ts';

const nested = 'mkdir -p sub/objects sub/refs; echo x > sub/HEAD';
const warning = /WARNING: 1 thing appeared in the workspace that programs of this machine may execute/;

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
