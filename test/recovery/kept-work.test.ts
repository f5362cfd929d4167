/** What exists only inside a sandbox stays there when something that its container mounts is gone from the host. */

import { existsSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { SpecInput } from '../../src/protocol/spec.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { testEngine } from '../support/engine.ts';
import { newProject } from '../support/projects.ts';
import { openSandboxes, runInSandbox, type TestSandboxes } from '../support/sandboxes.ts';
import { dockerAlone, when } from '../support/selection.ts';
import { bareTools, homeTree, inHomeOf, notesOf, toolHome } from '../support/tool-home.ts';
import { until } from '../support/until.ts';

const config = '.claude/.config.json';
const script = '.claude/own.sh';

interface Worked extends TestSandboxes {
  readonly home: string;
  readonly box: Sandbox;
  readonly containerId: string;
}

/** A sandbox with a held folder of claude and, in a copied workspace, work that was never applied. */
async function worked(spec: SpecInput = {}): Promise<Worked> {
  const home = toolHome({ ...bareTools, [config]: '{}', [script]: 'mine', '.claude/settings.json': '{}' });
  const path = await newProject({ 'as-it-was': 'same\n' });
  const world = await openSandboxes({ home });
  const box = await world.make({
    spec: { builtin_tools: ['claude'], workspace: { path, mode: 'copy' }, ...spec },
  });
  await runInSandbox(box, ['sh', '-c', 'echo home > ~/mine; cd /workspace && echo work > new']);
  // A look at the mounts is believed for a moment, and a start forgets it.
  await box.stop(0);
  await box.start();
  return { ...world, home, box, containerId: box.record.containerId ?? '' };
}

const workOf = async (box: Sandbox): Promise<string> =>
  (await runInSandbox(box, ['sh', '-c', 'cat /workspace/new ~/mine'])).output.data;

async function expectKept({ box, containerId, ...world }: Worked): Promise<void> {
  expect(await workOf(box)).toBe('work\nhome\n');
  expect((await box.changes()).changes.map(({ path }) => path.toString())).toEqual(['new']);
  expect(box.record.containerId).toBe(containerId);
  expect(await notesOf(world, 'tool_renewed')).toEqual([]);
}

const refused = (path: string, name: string) => ({
  code: 'mount_stale',
  details: { sandbox: name, path },
  advice: expect.stringMatching(`touch ${path}.*sally apply ${name}.*sally rm --force ${name}`),
});

describe('[R5] changes that were never applied, when a held path is gone from the host', () => {
  test('stay in a sandbox that runs, which goes on as it is', async () => {
    const made = await worked();
    rmSync(join(made.home, config));
    await expectKept(made);
    expect(await notesOf(made, 'mount_healed')).toEqual([]);
    expect(await notesOf(made, 'mount_stale')).toEqual([expect.stringContaining(config)]);
    await expect(made.box.remove({ force: false })).rejects.toMatchObject({ code: 'sandbox_changed' });
    // When it is there again it is held again.
    writeFileSync(join(made.home, config), '{}');
    await until(async () => {
      await workOf(made.box);
      return (await notesOf(made, 'mount_healed')).length === 1;
    });
    const look = `(echo x > ${config}) 2>/dev/null || echo held`;
    expect(await inHomeOf(made.box, look)).toBe('held\n');
    await expectKept(made);
  });

  test('stay where something else has to be held again, which is refused until the path is back', async () => {
    const made = await worked();
    const path = join(made.home, config);
    rmSync(path);
    writeFileSync(join(made.home, 'new'), '{"new":1}');
    renameSync(join(made.home, 'new'), join(made.home, '.claude/settings.json'));
    await expect(workOf(made.box)).rejects.toMatchObject(refused(path, made.box.name));
    writeFileSync(path, '');
    await expectKept(made);
    const look = 'cat .claude/settings.json; (echo x > .claude/settings.json) 2>/dev/null || echo held';
    expect(await inHomeOf(made.box, look)).toBe('{"new":1}held\n');
  });

  test('stay in one that is stopped: its start names the path and what to do', async () => {
    const made = await worked();
    const path = join(made.home, config);
    await made.box.stop(0);
    rmSync(path);
    for (const act of [() => made.box.start(), () => made.box.changes(), () => workOf(made.box)])
      await expect(act()).rejects.toMatchObject({ code: expect.stringMatching(/mount_stale|sandbox_state/) });
    await expect(made.box.start()).rejects.toMatchObject(refused(path, made.box.name));
    expect(made.box.state).toBe('STOPPED');
    writeFileSync(path, '');
    await made.box.start();
    await expectKept(made);
  });

  test('stay in one that is stopped: a script that is gone has a placeholder as long as it runs', async () => {
    const made = await worked();
    await made.box.stop(0);
    rmSync(join(made.home, script));
    const before = homeTree(made.home);
    await made.box.start();
    await expectKept(made);
    expect(lstatSync(join(made.home, script)).isDirectory()).toBe(true);
    expect(await inHomeOf(made.box, `(echo x > ${script}/x) 2>/dev/null || echo held`)).toBe('held\n');
    await made.box.stop(0);
    expect(homeTree(made.home)).toEqual(before);
  });
});

describe('[N5] a run for clean-up', () => {
  const over = { rule: 'limit', of: 'bytes', limit: 1, used: 2 } as const;

  test('keeps the container of a sandbox that was stopped for its disk usage', async () => {
    const made = await worked();
    const { box, containerId, world, home } = made;
    await box.watched.exceed(over);
    expect(box.view()).toMatchObject({ state: 'STOPPED', disk: { exceeded: 'limit' } });
    rmSync(join(home, config));
    await expect(box.files()).rejects.toMatchObject({
      code: 'mount_stale',
      details: { path: join(home, config) },
    });
    expect(await world.engine.find(containerId)).toBeDefined();
    writeFileSync(join(home, config), '{}');
    rmSync(join(home, script));
    const files = await box.files();
    expect((await files.readAll('/home/sally/mine', 100)).toString()).toBe('home\n');
    expect(box.record).toMatchObject({ containerId, cleanUp: 'brief' });
    expect(existsSync(join(home, script))).toBe(true);
  });

  test('[R5] keeps it too where a live workspace is no repository any more; a start makes it again', async () => {
    const path = toolHome({ '.git/HEAD': 'ref: refs/heads/main\n', '.git/objects/': '', '.git/refs/': '' });
    const made = await worked({ workspace: { path, mode: 'live' }, builtin_tools: [] });
    const { box, containerId, world } = made;
    await box.watched.exceed(over);
    rmSync(join(path, '.git'), { recursive: true });
    await expect(box.files()).rejects.toMatchObject({ code: 'mount_stale' });
    await expect(box.start({ cleanUp: true })).rejects.toMatchObject({ code: 'mount_stale' });
    expect(await world.engine.find(containerId)).toBeDefined();
    await box.start();
    expect(box.record.containerId).not.toBe(containerId);
    expect(await notesOf(made, 'workspace_renewed')).toEqual([
      expect.stringContaining('without what was written outside of the workspace'),
    ]);
    expect(readFileSync(join(path, 'new'), 'utf8')).toBe('work\n');
  });

  when(dockerAlone).test(
    'has no services and no hooks, also where the container was taken away',
    async () => {
      const world = await openSandboxes();
      const { image } = testEngine();
      const db = {
        name: 'db',
        image,
        command: ['sh', '-c', 'exec sleep 1000'],
        post_start_on_primary: [['true']],
      };
      const box = await world.make({ spec: { required_services: [db] } });
      await box.stop(0);
      const execs = box.execs().length;
      await world.world.engine.remove(box.record.containerId ?? '');
      await until(() => box.state === 'FAILED');
      await box.start({ cleanUp: true });
      expect(box.view()).toMatchObject({ state: 'READY', disk: { clean_up: true } });
      expect(await world.world.services.list(world.world.owner)).toEqual([]);
      expect(box.execs()).toHaveLength(execs);
      await box.start();
      expect(box.view()).toMatchObject({ state: 'READY', services: [{ name: 'db', state: 'READY' }] });
      expect(box.execs()).toHaveLength(execs + 1);
    },
  );
});
