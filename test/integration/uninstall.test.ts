/** [N23] `sally uninstall` on the real engine: what goes, what stays, and what happens when something is in the way. */

import { existsSync } from 'node:fs';
import { chown, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createContainer } from '../../src/engines/docker/containers/create.ts';
import { inspectContainer } from '../../src/engines/docker/containers/inspect.ts';
import { removeContainer } from '../../src/engines/docker/containers/remove.ts';
import { commitContainer } from '../../src/engines/docker/images/commit.ts';
import { listImages } from '../../src/engines/docker/images/list.ts';
import { removeImage } from '../../src/engines/docker/images/remove.ts';
import { tagImage } from '../../src/engines/docker/images/tag.ts';
import { createVolume } from '../../src/engines/docker/volumes/create.ts';
import { findVolume } from '../../src/engines/docker/volumes/inspect.ts';
import { listEngineFolders } from '../../src/lib/engine-folders.ts';
import { ownerId } from '../../src/lib/owner.ts';
import { label, ownedLabels } from '../../src/protocol/labels.ts';
import { makeBox, newFolder, sally } from '../support/cli.ts';
import { makeContainer, makeVolume, testEngine } from '../support/engine.ts';
import { imageFlags } from '../support/engine-under-test.ts';
import { leftovers } from '../support/leftovers.ts';
import { type OwnHome, ownHome } from '../support/own-home.ts';
import { enter, hasTerminal, sallyOnTerminal } from '../support/terminal.ts';

async function create({ sally: call }: OwnHome, ...args: readonly string[]): Promise<string> {
  const made = await call(['create', ...imageFlags(), ...args]);
  expect(made).toMatchObject({ code: 0 });
  return made.stdout.trim();
}

const left = ({ owner }: Pick<OwnHome, 'owner'>): Promise<readonly string[]> =>
  leftovers(testEngine().connection, `${label.owner}=${owner}`);

/** The same user with the engine under another address. */
const withEnv = (home: OwnHome, env: Record<string, string>): OwnHome => ({
  ...home,
  sally: (args, options = {}) => home.sally(args, { ...options, env: { ...env, ...options.env } }),
});

/** A container without our labels. */
async function foreignContainer(): Promise<string> {
  const { connection, image } = testEngine();
  const id = await createContainer(connection, {
    name: `not-ours-${process.pid}-${Date.now()}`,
    body: { Image: image, Cmd: ['sh'], Labels: {}, HostConfig: { NetworkMode: 'none' } },
  });
  onTestFinished(() => removeContainer(connection, id));
  return id;
}

describe('sally uninstall', () => {
  it('[N23][A12] removes the sandboxes, the daemon and the state of this user, and nothing of anybody else', async () => {
    const { connection } = testEngine();
    const home = await ownHome();
    const workspace = await newFolder();
    await create(home, '--name', 'first');
    await create(home, '--name', 'second', '--workspace', workspace);
    const secret = await home.sally(['secret', 'set', 'anthropic'], { input: 'sk-ant-of-the-test\n' });
    expect(secret.code).toBe(0);
    await mkdir(home.configDir, { recursive: true });
    await writeFile(join(home.configDir, 'config.yaml'), 'limits: { memory: 1g }\n');
    const foreign = await foreignContainer();
    const labelled = await makeContainer(testEngine());
    const volume = await makeVolume(testEngine(), `sallyport-test-uninstall-${process.pid}`);
    const neighbour = await makeBox();

    const { code, stdout, stderr } = await home.sally(['uninstall', '--yes']);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toMatch(/remove\s+sandbox\s+first\n/);
    expect(stdout).toMatch(/keep\s+secrets\s+\S+secrets\.json\s+--purge removes it/);
    expect(stdout).toMatch(/keep\s+program\s.*it runs from a checkout\n/);
    expect(await left(home)).toEqual([]);
    expect((await readdir(home.stateDir)).sort()).toEqual(['audit', 'audit-head', 'secrets.json']);
    expect(await readFile(join(home.stateDir, 'secrets.json'), 'utf8')).toContain('sk-ant-of-the-test');
    expect(existsSync(join(home.configDir, 'config.yaml'))).toBe(true);
    // The placeholders that protected the live workspace are gone as well.
    expect(await readdir(workspace)).toEqual([]);

    expect((await inspectContainer(connection, foreign)).status).toBe('created');
    expect((await inspectContainer(connection, labelled)).status).toBe('created');
    expect(await findVolume(connection, volume)).toBeDefined();
    expect((await sally(['exec', neighbour, 'echo', 'still here'])).stdout).toBe('still here\n');

    // A second run finds nothing to do and succeeds.
    expect((await home.sally(['uninstall', '--yes'])).code).toBe(0);
  });

  it('[N23] --purge also removes secrets, audit and configuration, and the state folder with them', async () => {
    const home = await ownHome();
    await create(home);
    await home.sally(['secret', 'set', 'anthropic'], { input: 'sk-ant-of-the-test\n' });
    await mkdir(home.configDir, { recursive: true });
    await writeFile(join(home.configDir, 'config.yaml'), '');
    const { code, stdout } = await home.sally(['uninstall', '--yes', '--purge', '--json']);
    expect(code).toBe(0);
    const { removed, failed } = JSON.parse(stdout) as Record<string, readonly { readonly kind: string }[]>;
    const kinds = ['sandbox', 'daemon', 'objects', 'secrets', 'configuration', 'state folder'];
    expect(removed?.map(({ kind }) => kind)).toEqual(kinds);
    expect(failed).toEqual([]);
    expect(existsSync(home.stateDir)).toBe(false);
    expect(existsSync(home.configDir)).toBe(false);
    expect(await left(home)).toEqual([]);
  });

  it('[N23] --dry-run shows the same and removes nothing; without a terminal it needs --yes', async () => {
    const home = await ownHome();
    const name = await create(home);
    const dry = await home.sally(['uninstall', '--dry-run']);
    expect(dry.code).toBe(0);
    expect(dry.stdout).toMatch(new RegExp(`remove\\s+sandbox\\s+${name}\n`));
    const unasked = await home.sally(['uninstall']);
    expect(unasked).toMatchObject({ code: 2 });
    expect(unasked.stderr).toContain('there is no terminal for the question');
    expect((await home.sally(['exec', name, 'echo', 'alive'])).stdout).toBe('alive\n');
  });

  it.runIf(hasTerminal)('[N23] asks on a terminal, and takes anything but yes for no', async () => {
    const home = await ownHome();
    const name = await create(home);
    const no = await sallyOnTerminal(['uninstall'], { env: home.env });
    await no.shows('Remove all of it? [y/N]');
    no.type(enter);
    expect((await no.result).code).toBe(1);
    expect((await home.sally(['ls'])).stdout).toContain(name);
    const yes = await sallyOnTerminal(['uninstall'], { env: home.env });
    await yes.shows('Remove all of it? [y/N]');
    yes.type(`y${enter}`);
    expect((await yes.result).code).toBe(0);
    expect(await left(home)).toEqual([]);
  });

  it('[N23] refuses to lose changes that exist nowhere else, and names them', async () => {
    const home = await ownHome();
    const workspace = await newFolder();
    await writeFile(join(workspace, 'file'), 'before');
    if (process.getuid?.() === 0) await chown(join(workspace, 'file'), 1000, 1000);
    await create(home, '--name', 'copy', '--workspace', workspace, '--workspace-mode', 'copy');
    await create(home, '--name', 'plain');
    await home.sally(['exec', 'copy', 'sh', '-c', 'echo after > /workspace/file']);
    const refused = await home.sally(['uninstall', '--yes', '--json']);
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stdout)).toMatchObject({
      error: { code: 'sandbox_changed', details: { sandboxes: ['copy'] } },
    });
    expect((await home.sally(['exec', 'plain', 'echo', 'alive'])).stdout).toBe('alive\n');
    expect((await home.sally(['uninstall', '--yes', '--force'])).code).toBe(0);
    expect(await left(home)).toEqual([]);
  });

  it('[N23][A12] finds by its labels what a lost state folder has forgotten, also images, but no name that others gave', async () => {
    const { connection } = testEngine();
    const home = await ownHome();
    const name = await create(home);
    await home.sally(['daemon', 'stop']);
    await rm(home.stateDir, { recursive: true });
    const own = ownedLabels('image-project', { [label.owner]: home.owner });
    const changes = Object.entries(own).map(([key, value]) => `LABEL ${key}=${value}`);
    const source = await makeContainer(testEngine());
    const tag = `${process.pid}-${Date.now()}`;
    await commitContainer(connection, source, { repository: 'sallyport-project', tag, changes });
    // What somebody builds on it, or calls by another name, carries the same labels.
    await tagImage(connection, `sallyport-project:${tag}`, { repository: 'mine', tag });
    onTestFinished(() => removeImage(connection, `mine:${tag}`));
    await createVolume(connection, {
      name: `sallyport-lost-${tag}`,
      labels: ownedLabels('build-turn', { [label.owner]: home.owner }),
    });
    const dry = await home.sally(['uninstall', '--dry-run']);
    expect(dry.stdout).toMatch(new RegExp(`remove\\s+objects\\s+container sallyport-${name}`));
    expect((await home.sally(['uninstall', '--yes'])).code).toBe(0);
    const images = await listImages(connection, [`${label.owner}=${home.owner}`]);
    expect(images.flatMap(({ tags }) => tags)).toEqual([`mine:${tag}`]);
    expect((await left(home)).filter((line) => !line.startsWith('image'))).toEqual([]);
  });

  it('[N23] stops where no engine answers, keeps what the next attempt needs, and then finishes', async () => {
    const home = await ownHome();
    const socket = join(home.stateDir, '../away.sock');
    const back = (): Promise<void> => symlink(testEngine().endpoint.replace('unix://', ''), socket);
    await back();
    const env = { DOCKER_HOST: `unix://${socket}` };
    await create(withEnv(home, env));
    await home.sally(['daemon', 'stop'], { env });
    await rm(socket);
    const refused = await home.sally(['uninstall', '--yes'], { env });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/the sandboxes cannot be inspected: .*away\.sock/);
    expect(refused.stderr).toContain('--force removes all but the sandboxes');
    expect(existsSync(join(home.stateDir, 'sandboxes'))).toBe(true);
    expect(await left(home)).not.toEqual([]);

    const forced = await home.sally(['uninstall', '--yes', '--force'], { env });
    expect(forced.code).toBe(1);
    expect(forced.stderr).toContain(
      `docker rm -f $(docker ps -aq --filter label=${label.owner}=${home.owner})`,
    );
    expect(existsSync(join(home.stateDir, 'sandboxes'))).toBe(false);

    await back();
    expect((await home.sally(['uninstall', '--yes'], { env })).code).toBe(0);
    expect(await left(home)).toEqual([]);
  });

  it('[N23] removes the sandboxes and daemons of every engine that was used, whichever the environment names', async () => {
    const home = await ownHome();
    const socket = join(home.stateDir, '../other.sock');
    await symlink(testEngine().endpoint.replace('unix://', ''), socket);
    await create(home);
    await create(withEnv(home, { DOCKER_HOST: `unix://${socket}` }));
    const owners = listEngineFolders(home.stateDir).map(({ path }) =>
      ownerId(process.getuid?.() ?? -1, path),
    );
    expect(owners).toEqual([home.owner, expect.any(String)]);
    for (const owner of owners) expect(await left({ owner })).not.toEqual([]);
    expect((await home.sally(['uninstall', '--dry-run'])).stdout.match(/remove\s+daemon/g)).toHaveLength(2);
    expect((await home.sally(['uninstall', '--yes'])).code).toBe(0);
    for (const owner of owners) expect(await left({ owner })).toEqual([]);
    expect(existsSync(join(home.stateDir, 'engines'))).toBe(false);
  });

  it("[N23] leaves files of the state folder that are not Sallyport's, and names them", async () => {
    const home = await ownHome();
    await create(home);
    await writeFile(join(home.stateDir, 'thesis.tex'), 'mine');
    const { code, stdout } = await home.sally(['uninstall', '--yes', '--purge']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/keep\s+file\s+\S+thesis\.tex\s+it is not Sallyport's/);
    expect(await readdir(home.stateDir)).toEqual(['thesis.tex']);
  });
});
