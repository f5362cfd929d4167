/** [N23] `sally uninstall` and the private engine: removed when nobody else needs it. Each test has an engine of its own. */

import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { connect } from '../../src/engines/docker/connect.ts';
import { createVolume } from '../../src/engines/docker/volumes/create.ts';
import { removeVolume } from '../../src/engines/docker/volumes/remove.ts';
import { bridgeOf } from '../../src/setup/private-engine/bridge.ts';
import { findDaemon, findLeftovers } from '../../src/setup/private-engine/owned-processes.ts';
import { privateEnginePaths } from '../../src/setup/private-engine/paths.ts';
import { imageFlags } from '../support/engine-under-test.ts';
import { copyTestImage, ownEngine } from '../support/own-engine.ts';
import { type OwnHome, ownHome } from '../support/own-home.ts';
import { asRoot, when } from '../support/selection.ts';

async function userOfOwnEngine() {
  const engine = await ownEngine();
  await engine.start();
  const home = await ownHome({ engineDir: engine.folder });
  const paths = privateEnginePaths({ engineDir: engine.folder });
  const env = { DOCKER_HOST: `unix://${engine.socket}` };
  const call: OwnHome['sally'] = (args, more = {}) =>
    home.sally(args, { ...more, env: { ...env, ...more.env } });
  return { engine, home, paths, call };
}

const hasBridge = (name: string): boolean => existsSync(`/sys/class/net/${name}`);

when(asRoot).describe('sally uninstall, with a private engine', () => {
  it('[N23] removes it with its data, processes, socket and bridge', async () => {
    const { engine, home, paths, call } = await userOfOwnEngine();
    await copyTestImage(engine.socket);
    expect((await call(['create', ...imageFlags()])).code).toBe(0);
    expect(hasBridge(bridgeOf(paths).name)).toBe(true);
    const { code, stdout, stderr } = await call(['uninstall', '--yes', '--purge']);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toMatch(
      new RegExp(`remove\\s+private engine\\s+${engine.socket}, data in ${paths.dataRoot}`),
    );
    expect(await findDaemon(paths)).toBeUndefined();
    expect(await findLeftovers(paths)).toEqual([]);
    expect(existsSync(engine.folder)).toBe(false);
    expect(existsSync(home.stateDir)).toBe(false);
    expect(hasBridge(bridgeOf(paths).name)).toBe(false);
  });

  it('[N23][A12] keeps it while it holds something of somebody else, and says what', async () => {
    const { engine, paths, call } = await userOfOwnEngine();
    const connection = await connect({ kind: 'unix', path: engine.socket });
    await createVolume(connection, { name: 'database-of-ada', labels: {} });
    const kept = await call(['uninstall', '--yes', '--force']);
    expect(kept.code).toBe(0);
    expect(kept.stdout).toMatch(
      /keep\s+private engine\s.*it holds objects of others: database-of-ada: sally setup --stop/,
    );
    expect(await findDaemon(paths)).toBeDefined();
    await removeVolume(connection, 'database-of-ada');
    expect((await call(['uninstall', '--yes'])).code).toBe(0);
    expect(await findDaemon(paths)).toBeUndefined();
    expect(existsSync(paths.dataRoot)).toBe(false);
  });

  it('[N23] keeps one that does not run, as nobody knows what it holds, unless it is forced; an edited configuration stays', async () => {
    const { engine, paths, call } = await userOfOwnEngine();
    await engine.stop();
    await writeFile(paths.configFile, '{"registry-mirrors":["https://mirror.test"]}\n');
    const kept = await call(['uninstall', '--yes']);
    expect(kept.stdout).toMatch(/keep\s+private engine\s.*it does not answer, so its content is unknown/);
    expect(existsSync(paths.dataRoot)).toBe(true);
    expect((await call(['uninstall', '--yes', '--force'])).code).toBe(0);
    expect(existsSync(paths.dataRoot)).toBe(false);
    expect(existsSync(join(engine.folder, 'daemon.json'))).toBe(true);
  });
});
