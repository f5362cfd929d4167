/** `builtin_tools` on the real engine, with a home of the test's own. */

import { chown, lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createBody } from '../../src/protocol/requests.ts';
import type { SpecInput } from '../../src/protocol/spec.ts';
import type { Sandboxes } from '../../src/sandboxes/sandboxes.ts';
import { holdsLimits, testImage } from '../support/engine-under-test.ts';
import { openSandboxes, runInSandbox } from '../support/sandboxes.ts';
import { asRoot, when } from '../support/selection.ts';

const owner = 1234;

/** Everything in it belongs to an ordinary user, as root's own could not be written to by a sandbox. */
async function home(files: Readonly<Record<string, string>>): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'sallyport-home-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(path, name)), { recursive: true });
    await writeFile(join(path, name), content);
  }
  for (const name of ['.', ...(await readdir(path, { recursive: true }))])
    await chown(join(path, name), owner, owner);
  return path;
}

async function notes(sandboxes: Sandboxes): Promise<readonly string[]> {
  const codes: string[] = [];
  for await (const event of sandboxes.events.follow(0, AbortSignal.timeout(30_000))) {
    if (event.type === 'sandbox.note') codes.push(event.code);
    if (event.sequence === sandboxes.events.sequence) break;
  }
  return codes;
}

when(asRoot).describe('built-in tools', () => {
  test('[A4] bring their folders to the home inside, each once, and skip what is not there', async () => {
    const path = await home({
      '.claude/settings': 'mine',
      '.npm/_cacache/x': 'cached',
      '.config/gh/hosts.yml': 'token',
    });
    const { make, sandboxes } = await openSandboxes({ home: path });
    const box = await make({ spec: { builtin_tools: ['claude', 'git', 'npm', 'apt', 'claude'] } });
    const { stdout } = await runInSandbox(box, [
      'sh',
      '-c',
      'cd && id -u && cat .claude/settings .npm/_cacache/x .config/gh/hosts.yml && echo more > .claude/more && ' +
        'touch .config/other && ! touch .config/gh/x 2>/dev/null && stat -c %U .config',
    ]);
    expect(stdout.data).toBe(`${owner}\nminecachedtokensally\n`);
    expect(await readFile(join(path, '.claude/more'), 'utf8')).toBe('more\n');
    expect(box.record.plan.sockets).toEqual([{ id: 'ssh-agent' }]);
    const inside = (target: string): boolean => /\/\.(claude|npm)\//.test(target);
    const targets = box.record.plan.mounts.map(({ target }) => target);
    expect(targets.filter((target) => !inside(target))).toEqual([
      '/home/sally/.claude',
      '/home/sally/.config/gh',
      '/home/sally/.npm',
    ]);
    expect(await notes(sandboxes)).toEqual([
      'user_owner',
      'tool_skipped',
      'tool_credentials',
      'tool_credentials',
      'tool_placeholders',
      'tool_placeholders',
      'ssh_agent_missing',
    ]);
    await expect(box.verify()).resolves.toMatchObject({ ok: true });
  });

  test('[A6] a tree with links that lead out becomes a copy of its own, which goes with the sandbox', async () => {
    const path = await home({ '.claude/settings': 'mine', '.claude/deep/file': 'deep', secret: 'hidden' });
    await symlink('../../secret', join(path, '.claude/deep/out'));
    await symlink(join(path, '.claude/settings'), join(path, '.claude/inside'));
    const { make, sandboxes, stateDir } = await openSandboxes({ home: path });
    const box = await make({ spec: { builtin_tools: ['claude'] } });
    const { stdout } = await runInSandbox(box, [
      'sh',
      '-c',
      'cd ~/.claude && ls -A . deep && cat inside deep/file && echo changed > settings && cat inside',
    ]);
    expect(stdout.data).toBe('.:\ndeep\ninside\nsettings\n\ndeep:\nfile\nminedeepchanged\n');
    expect(await readFile(join(path, '.claude/settings'), 'utf8')).toBe('mine');
    const shadow = join(stateDir, 'sandboxes', box.id, 'shadow/claude');
    expect((await lstat(shadow)).mode & 0o777).toBe(0o700);
    expect(await notes(sandboxes)).toEqual([
      'user_owner',
      'tool_shadow_copy',
      'tool_credentials',
      'tool_links_left_out',
    ]);
    // Over a stop it stays as it is.
    await box.stop(1000);
    await box.start();
    const again = await runInSandbox(box, ['cat', '/home/sally/.claude/settings']);
    expect(again.stdout.data).toBe('changed\n');
    await box.remove({ force: true });
    await expect(lstat(shadow)).rejects.toThrow('ENOENT');
    expect(await readdir(join(stateDir, 'sandboxes'))).toEqual([]);
  });

  test('[A6] a copy of a sandbox whose daemon died is removed with it by the next one', async () => {
    const path = await home({ '.claude/settings': 'mine' });
    await symlink('/etc/hostname', join(path, '.claude/out'));
    const before = await openSandboxes({ home: path });
    const box = await before.make({ spec: { name: 'survivor', builtin_tools: ['claude'] } });
    await before.abandon();
    const after = await openSandboxes({ home: path, stateDir: before.stateDir });
    const again = after.sandboxes.get('survivor');
    const { stdout } = await runInSandbox(again, ['cat', '/home/sally/.claude/settings']);
    expect(stdout.data).toBe('mine');
    await again.remove({ force: true });
    await expect(lstat(join(before.stateDir, 'sandboxes', box.id))).rejects.toThrow('ENOENT');
    expect(after.reports).toEqual([]);
  });

  test('[A3][A4] what is missing, elsewhere, in the way or strict is refused before anything is made', async () => {
    const path = await home({ '.npm/x': '', '.ssh/id': 'key', '.cache/uv/x': '' });
    await symlink('/usr', join(path, '.codex'));
    await symlink('.ssh', join(path, '.claude'));
    const { sandboxes } = await openSandboxes({ home: path });
    const source = await mkdtemp(join(tmpdir(), 'sallyport-in-'));
    onTestFinished(() => rm(source, { recursive: true }));
    const strict: [SpecInput, RegExp] = [{ builtin_tools: ['npm'], profile: 'strict' }, /strict profile/];
    const refusals: [SpecInput, RegExp][] = [
      [{ builtin_tools: ['codex'] }, /\.codex of codex leads to \/usr, out of your home/],
      [{ builtin_tools: ['claude'] }, /\.claude .*\.ssh holds credentials/],
      ...(holdsLimits ? [strict] : []),
      [
        { builtin_tools: ['npm'], mounts: [{ source, target: '/home/sally/.npm/x' }] },
        /builtin_tools \(npm\): .* nested with mounts\.0\.target/,
      ],
      [
        { builtin_tools: ['uv'], copies: [{ source, target: '/home/sally/.cache/uv' }] },
        /builtin_tools \(uv\): .* also the target of copies\.0\.target/,
      ],
    ];
    for (const [spec, message] of refusals) {
      const body = createBody.parse({ spec: { ...testImage(), ...spec } });
      await expect(sandboxes.create(body)).rejects.toMatchObject({
        code: 'refused_by_policy',
        message: expect.stringMatching(message),
      });
    }
    await rm(join(path, '.claude'));
    const body = createBody.parse({ spec: { ...testImage(), builtin_tools: ['claude'] } });
    await expect(sandboxes.create(body)).rejects.toThrow(/claude needs .*\.claude, which is not there/);
    expect(sandboxes.list()).toEqual([]);
    expect(sandboxes.events.sequence).toBe(0);
  });
});
