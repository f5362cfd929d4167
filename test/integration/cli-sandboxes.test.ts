import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeBox, newFolder, removeAfterwards, sally } from '../support/cli.ts';
import { testEngine } from '../support/engine.ts';

const image = (): string => testEngine().image;

describe('sally create', () => {
  it('prints the name of a sandbox that stays, with what was asked for', async () => {
    const name = await makeBox([
      '--name',
      'made',
      '--label',
      'team=web',
      '-e',
      'A=1',
      '-m',
      '256m',
      '-w',
      '/tmp',
    ]);
    expect(name).toBe('made');
    const result = await sally(['exec', name, 'sh', '-c', 'echo $A; pwd']);
    expect(result.stdout).toBe('1\n/tmp\n');
    const [view] = JSON.parse((await sally(['inspect', name])).stdout);
    expect(view).toMatchObject({
      name,
      state: 'READY',
      labels: { team: 'web' },
      limits: { memory_bytes: 256 * 2 ** 20 },
    });
  });

  it('reads variables from a file, and a flag wins over it', async () => {
    const folder = await newFolder();
    await writeFile(join(folder, 'vars'), '# of the test\nA=file\nB=x y\n');
    const name = await makeBox(['--env-file', 'vars', '-e', 'A=flag'], { cwd: folder });
    expect((await sally(['exec', name, 'sh', '-c', 'echo "$A $B"'])).stdout).toBe('flag x y\n');
  });

  it('[O8] mounts read-only unless :rw is written', async () => {
    const folder = await newFolder();
    await writeFile(join(folder, 'there'), 'yes');
    const name = await makeBox(['-v', `${folder}:/ro`, '-v', `${folder}:/rw:rw`]);
    const script = 'cat /ro/there; echo x > /ro/new || echo refused; echo x > /rw/new && echo written';
    expect((await sally(['exec', name, 'sh', '-c', script])).stdout).toBe('yesrefused\nwritten\n');
  });

  it('[G1] names it by its workspace, which is live, and finds the same one again with --reuse', async () => {
    const cwd = await newFolder();
    await writeFile(join(cwd, 'seen'), 'by both');
    const name = await makeBox(['--workspace'], { cwd });
    expect(name).toMatch(/-[0-9a-f]{8}$/);
    expect((await sally(['exec', name, 'cat', 'seen'])).stdout).toBe('by both');
    const again = await sally(['create', '--image', image(), '--workspace', '--reuse'], { cwd });
    expect(again).toMatchObject({ code: 0, stdout: `${name}\n` });
  });

  it('refuses a name that is taken, and says what to do', async () => {
    const name = await makeBox();
    const result = await sally(['create', '--image', image(), '--name', name]);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain(`sally rm ${name}`);
  });

  it.each([
    [['mybox'], '--name mybox'],
    [['--network', 'host'], 'only none exists'],
    [['-m', '12'], 'did you mean 12m?'],
    [['-v', '/etc:/etc2'], '/etc'],
    [['-v', 'nocolon'], 'SOURCE:TARGET'],
    [['-u', '0:0'], '0'],
    [['-e', 'NAME'], 'NAME=value'],
    [['--env-file', '/nowhere/file'], 'cannot be read'],
    [['--label', 'dev.sallyport.owned=no'], 'reserved'],
    [['--idle-ttl', '30'], 'duration'],
    [['--workspace-mode', 'some'], 'live, readonly, copy'],
  ])('refuses %j before anything is made', async (args, message) => {
    const result = await sally(['create', '--image', image(), '--name', 'refused', ...args]);
    expect([1, 2]).toContain(result.code);
    expect(result.stderr).toMatch(/^sally: /);
    expect(result.stderr).toContain(message);
    expect((await sally(['inspect', 'refused'])).code).toBe(1);
  });
});

describe('sally ls and inspect', () => {
  it('lists for people, for scripts and by label', async () => {
    const one = await makeBox(['--label', 'colour=red']);
    const two = await makeBox();
    const table = (await sally(['ls'])).stdout;
    expect(table).toMatch(/^NAME +STATE +IMAGE/);
    expect(table).toMatch(new RegExp(`^${one} +ready`, 'm'));
    const all = JSON.parse((await sally(['ls', '--json'])).stdout).sandboxes as { name: string }[];
    expect(all.map(({ name }) => name)).toEqual(expect.arrayContaining([one, two]));
    expect((await sally(['ps', '-q', '--label', 'colour=red'])).stdout).toBe(`${one}\n`);
  });

  it('says which sandbox was meant when none has the name', async () => {
    await makeBox(['--name', 'wombat']);
    const result = await sally(['inspect', 'wombta']);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('did you mean wombat?');
    expect(JSON.parse(result.stdout).error.code).toBe('sandbox_not_found');
  });
});

describe('sally stop, start, pause, resume', () => {
  it('[G7] keeps the files over a stop, and refuses a command meanwhile', async () => {
    const name = await makeBox();
    await sally(['exec', name, 'sh', '-c', 'echo kept > ~/file']);
    expect(await sally(['stop', name])).toMatchObject({ code: 0, stdout: `${name}\n` });
    const refused = await sally(['exec', name, 'true']);
    expect(refused.code).toBe(125);
    expect(refused.stderr).toContain(`sally start ${name}`);
    expect((await sally(['start', name])).code).toBe(0);
    expect((await sally(['exec', name, 'sh', '-c', 'cat ~/file'])).stdout).toBe('kept\n');
  });

  it('freezes and lets go on', async () => {
    const name = await makeBox();
    expect((await sally(['pause', name])).code).toBe(0);
    expect((await sally(['ls'])).stdout).toMatch(new RegExp(`^${name} +paused`, 'm'));
    expect((await sally(['resume', name])).code).toBe(0);
    expect((await sally(['exec', name, 'echo', 'on'])).stdout).toBe('on\n');
  });

  it.each(['stop', 'start', 'pause', 'resume'])(
    '%s of several does what it can and fails for the rest',
    async (verb) => {
      const name = await makeBox();
      if (verb === 'resume') await sally(['pause', name]);
      const result = await sally([verb, name, 'no-such-box']);
      expect(result).toMatchObject({ code: 1, stdout: `${name}\n` });
      expect(result.stderr).toContain('"no-such-box"');
    },
  );
});

describe('sally stats and verify', () => {
  it('says what a sandbox uses', async () => {
    const name = await makeBox(['-m', '128m']);
    const { sandboxes } = JSON.parse((await sally(['stats', '--json', name])).stdout);
    expect(sandboxes[0]).toMatchObject({ name, memory_limit_bytes: 128 * 2 ** 20 });
    expect(sandboxes[0].memory_bytes).toBeGreaterThan(0);
    expect((await sally(['stats'])).stdout).toContain('128 MiB');
    expect((await sally(['stats', 'no-such-box'])).code).toBe(1);
  });

  it('reads back from inside what is enforced', async () => {
    const name = await makeBox(['--profile', 'strict']);
    const result = await sally(['verify', name]);
    expect(result.code).toBe(0);
    expect(result.stdout).toMatch(/no new privileges +1/);
    expect(JSON.parse((await sally(['verify', '--json', name])).stdout).ok).toBe(true);
    expect((await sally(['verify', 'no-such-box'])).code).toBe(1);
  });
});

describe('sally rm, prune, reset', () => {
  it('removes several, and one that is not there is an error unless --force', async () => {
    const [one, two] = [await makeBox(), await makeBox()];
    expect(await sally(['rm', one, two])).toMatchObject({ code: 0, stdout: `${one}\n${two}\n` });
    expect((await sally(['rm', one])).code).toBe(1);
    expect((await sally(['rm', '--force', one])).code).toBe(0);
  });

  it('[R5] prunes a sandbox whose workspace is gone, after it said so', async () => {
    const gone = await newFolder();
    const name = await makeBox(['--workspace', gone]);
    expect((await sally(['prune', '--dry-run'])).stdout).not.toContain(name);
    const { rm } = await import('node:fs/promises');
    await rm(gone, { recursive: true });
    expect((await sally(['prune', '--dry-run'])).stdout).toMatch(
      new RegExp(`^${name} +sandbox +[\\d.]+ \\w+ +would be removed +its workspace .* is gone$`, 'm'),
    );
    expect((await sally(['inspect', name])).code).toBe(0);
    const pruned = await sally(['prune']);
    expect(pruned.stdout).toMatch(new RegExp(`^${name} +sandbox .* removed`, 'm'));
    expect(pruned.stderr).toMatch(/ freed$/m);
    expect((await sally(['inspect', name])).code).toBe(1);
  });

  it('[R5] prunes sandboxes of one agent alone, and refuses an agent that nobody knows', async () => {
    const gone = await newFolder();
    const mine = await makeBox(['--label', 'sallyport.agent=mine', '--workspace', gone]);
    const other = await makeBox(['--label', 'sallyport.agent=other', '--workspace', gone, '--name', 'other']);
    const { rm } = await import('node:fs/promises');
    await rm(gone, { recursive: true });
    const unknown = await sally(['prune', '--agent', 'mien', '--json']);
    expect(unknown.code).not.toBe(0);
    expect(JSON.parse(unknown.stdout).error).toMatchObject({
      code: 'agent_unknown',
      message: 'there is no agent "mien"; did you mean mine?',
      details: { known: expect.arrayContaining(['claude', 'mine', 'other']) },
    });
    const rows = async (more: readonly string[]) =>
      JSON.parse((await sally(['prune', '--agent', 'mine', '--json', ...more])).stdout).things;
    expect(await rows(['--dry-run'])).toMatchObject([
      { kind: 'sandbox', name: mine, outcome: 'would_be_removed' },
    ]);
    expect((await sally(['inspect', mine])).code).toBe(0);
    expect(await rows([])).toMatchObject([{ kind: 'sandbox', name: mine, outcome: 'removed' }]);
    expect((await sally(['inspect', mine])).code).toBe(1);
    expect((await sally(['inspect', other])).code).toBe(0);
  });

  it('resets only when it was told so', async () => {
    const name = await makeBox();
    const refused = await sally(['reset']);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('--yes');
    expect((await sally(['inspect', name])).code).toBe(0);
    expect((await sally(['reset', '--yes'])).code).toBe(0);
    expect((await sally(['ls', '-q'])).stdout).toBe('');
  });
});

describe('sally run -d', () => {
  it('prints the name, goes on, and stays for its log', async () => {
    const args = [
      'run',
      '-d',
      '--name',
      'detached',
      '--image',
      image(),
      '--',
      'sh',
      '-c',
      'echo one; exit 4',
    ];
    removeAfterwards('detached');
    expect(await sally(args)).toMatchObject({ code: 0, stdout: 'detached\n' });
    expect(await sally(['wait', 'detached'])).toMatchObject({ code: 0, stdout: '4\n' });
    expect((await sally(['logs', 'detached'])).stdout).toBe('one\n');
  });

  it('shares the folder without the name of the folder’s own sandbox', async () => {
    const cwd = await newFolder();
    await makeBox(['--workspace'], { cwd });
    const args = ['run', '--workspace', '--image', image(), '--', 'sh', '-c', 'echo from run > made'];
    expect((await sally(args, { cwd })).code).toBe(0);
    expect((await sally(['exec', '--', 'cat', 'made'], { cwd })).stdout).toBe('from run\n');
  });
});
